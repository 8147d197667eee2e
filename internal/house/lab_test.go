package house

import (
	"testing"

	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/recipes"
)

// The example lab is what a newcomer submits first: its locks must fit the
// catalogue of the same commit. tp submit --upgrade-recipe rewrites them.
func TestExampleLabIsCurrent(t *testing.T) {
	l, err := lab.Find("../../contrib/lab", lab.Options{Trust: []string{"../../contrib/lab"}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Experiments()
	if err != nil || len(list) < 2 {
		t.Fatalf("%d experiments, %v", len(list), err)
	}
	for _, e := range list {
		lock, err := recipes.ReadLock(&e)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if state, why := recipes.Embedded().Check(lock); state != recipes.Current {
			t.Errorf("%s: the lock is %s: %v", e.Name, state, why)
		}
	}
}
