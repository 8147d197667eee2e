package wire

import (
	"fmt"
	"testing"
)

// The shapes of 22.05 and of 26.05. Old dialects send everybody's.
func TestAssociationsOfAUser(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"v0.0.38": {`{"associations":[{"account":"root","user":null,"is_default":0,"default":{"qos":null},"qos":["normal"]},
			{"account":"Dept bio+","cluster":"lab","partition":null,"user":"ann","is_default":1,"default":{"qos":null},"qos":["gpu4","normal"]},
			{"account":"vip","cluster":"lab","user":"bob","is_default":0,"qos":["normal"]}]}`, "[{lab Dept bio+  [gpu4 normal]  true}]"},
		"v0.0.45": {`{"associations":[{"account":"vip","cluster":"lab","partition":"gpu","user":"ann","is_default":false,"default":{"qos":"high"},"qos":["high"]}]}`,
			"[{lab vip gpu [high] high false}]"},
		"nobody": {`{"associations":[]}`, "[]"},
	} {
		var b Associations
		if err := Decode([]byte(c.body), &b); err != nil {
			t.Fatal(err)
		}
		if got := b.Of("ann"); got == nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestNamesOfAccounting(t *testing.T) {
	for _, body := range []string{`{"QOS":[{"name":"normal"},{"name":"high"}]}`, `{"qos":[{"name":"normal"},{"name":"high"}]}`, `{"accounts":[{"name":"normal"},{"name":"high"}]}`} {
		var b Names
		if err := Decode([]byte(body), &b); err != nil || fmt.Sprint(b.All()) != "[normal high]" {
			t.Errorf("%s: %v, %v", body, b.All(), err)
		}
	}
}

func TestStatesAlone(t *testing.T) {
	var b JobStates
	err := Decode([]byte(`{"jobs":[{"job_id":"7","state":["RUNNING","COMPLETING"]},{"job_id":"9+0","state":["PENDING"]},{"job_id":"10+1","state":["PENDING"]},
		{"job_id":"12_3","state":["RUNNING"]},{"job_id":"x","state":["RUNNING"]},{"job_id":"3+7","state":["RUNNING"]}]}`), &b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range b.Model() {
		got = append(got, fmt.Sprintf("%d %d %d %d %s %s %v", j.ID, j.HetJob, j.HetOffset, j.ArrayJob, j.ArrayTask, j.State, j.Flags))
	}
	want := []string{"7 0 0 0  RUNNING [COMPLETING]", "9 9 0 0  PENDING []", "10 9 1 0  PENDING []", "12 0 0 12 3 RUNNING []"}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
