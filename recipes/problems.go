package recipes

import (
	"errors"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// problems gathers everything that is wrong, so that one run of tp validate
// shows it all.
type problems struct{ list []error }

func (p *problems) add(err error) {
	if err != nil {
		p.list = append(p.list, err)
	}
}

// err is nil, the only one as it is, or all of them in one message whose hint
// is the first one's.
func (p *problems) err() error {
	switch len(p.list) {
	case 0:
		return nil
	case 1:
		return p.list[0]
	}
	var lines []string
	hint := ""
	for _, err := range p.list {
		lines = append(lines, err.Error())
		var f *fault.Error
		if errors.As(err, &f) && hint == "" {
			hint = f.Hint
		}
	}
	all := fault.New(fault.Usage, "%s", strings.Join(lines, "\n"))
	all.Hint, all.Err = hint, errors.Join(p.list...)
	return all
}
