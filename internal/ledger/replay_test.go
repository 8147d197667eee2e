package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
)

func TestReplay(t *testing.T) {
	header, _ := json.Marshal(Header{ID: "run-0123456789ab", Experiment: "e"})
	created := Event{Type: Created, Data: header}
	intent := Event{Type: Intent, Attempt: 1, Token: "t"}
	submitted := Event{Type: Submitted, Attempt: 1, JobID: 7}
	state := func(s State) Event { return Event{Type: Changed, Attempt: 1, State: s} }
	for _, c := range []struct {
		name      string
		events    []Event
		want      State
		reason    string
		unsettled bool
		job       slurm.JobID
	}{
		{"nothing", nil, NotSubmitted, "", false, 0},
		{"created", []Event{created, {Type: Staged}, {Type: Rendered}, {Type: Note}}, NotSubmitted, "", false, 0},
		{"cancelled before any submission", []Event{created, {Type: Cancel, Message: "by u"}}, Cancelled, "by u", false, 0},
		{"killed between intent and outcome", []Event{created, intent}, NotSubmitted, "", true, 0},
		{"cancelled while nobody knows", []Event{created, intent, {Type: Cancel}}, NotSubmitted, "", true, 0},
		{"queued", []Event{created, intent, submitted}, Accepted, "", false, 7},
		{"refused", []Event{created, intent, {Type: Refused, Attempt: 1, Message: "no account"}}, Failed, "refused: no account", false, 0},
		{"in doubt", []Event{created, intent, {Type: Doubt, Attempt: 1, Message: "504"}}, Unknown, "504", true, 0},
		{"doubt cleared", []Event{created, intent, {Type: Doubt, Attempt: 1}, submitted}, Accepted, "", false, 7},
		{"doubt after the answer changes nothing", []Event{created, intent, submitted, {Type: Doubt, Attempt: 1}}, Accepted, "", false, 7},
		{"seen running before the answer was written", []Event{created, intent, state(Running), submitted}, Running, "", false, 7},
		{"forgotten by Slurm while running", []Event{created, intent, submitted, state(Running), state(Unknown)}, Unknown, "", false, 7},
		{"forgotten by Slurm after the end", []Event{created, intent, submitted, state(Succeeded), state(Unknown)}, Succeeded, "", false, 7},
		{"requeued after preemption", []Event{created, intent, submitted, state(Preempted), state(Queued)}, Queued, "", false, 7},
		{"state of an older attempt", []Event{created, intent, submitted, {Type: Intent, Attempt: 2}, {Type: Submitted, Attempt: 2, JobID: 8}, state(Failed)}, Accepted, "", false, 8},
		{"intent and answer torn", []Event{created, {Type: Changed, Attempt: 1, JobID: 9, State: Running}}, Running, "", true, 9},
		{"a state of tomorrow", []Event{created, intent, submitted, state("MIGRATING")}, "MIGRATING", "", false, 7},
		{"a type of tomorrow", []Event{created, {Type: "teleported", State: Failed}}, NotSubmitted, "", false, 0},
		{"a second header", []Event{created, {Type: Created, Data: []byte(`{"id":"run-ffffffffffff"}`)}}, NotSubmitted, "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Replay(c.events)
			_, unsettled := r.Unsettled()
			if r.State != c.want || r.Reason != c.reason || unsettled != c.unsettled || r.JobID() != c.job {
				t.Errorf("got %s %q unsettled=%v job=%d, want %s %q unsettled=%v job=%d",
					r.State, r.Reason, unsettled, r.JobID(), c.want, c.reason, c.unsettled, c.job)
			}
			if len(c.events) > 0 && r.ID != "run-0123456789ab" {
				t.Errorf("id %q", r.ID)
			}
		})
	}
}

func TestReplayTimes(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0).UTC() }
	r := Replay([]Event{
		{Type: Intent, Attempt: 1, Time: at(10)},
		{Type: Submitted, JobID: 1, Time: at(11)},
		{Type: Changed, State: Running, Time: at(20), At: at(15)},
		{Type: Changed, State: Preempted, Time: at(30)},
		{Type: Changed, State: Queued, Time: at(31)},
		{Type: Changed, State: Running, Time: at(40)},
	})
	a, _ := r.Last()
	if !a.Started.Equal(at(15)) || !a.Ended.IsZero() || !a.Intended.Equal(at(10)) || !a.Submitted.Equal(at(11)) || !r.Updated.Equal(at(40)) {
		t.Errorf("attempt %+v, updated %v", a, r.Updated)
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte(`{"type":"created","data":{"id":"run-0123456789ab"}}` + "\n" + `{"type":"state","attempt":3,"state":"RUNNING"}` + "\n"))
	f.Add([]byte(`{"type":"submitted"}` + "\n" + `{"type":"int`))
	f.Add([]byte(`{"type":"intent","attempt":-1}` + "\n" + `{"type":"refused","attempt":-9}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := Replay(parseEvents(data))
		r.Unsettled()
		for i := 1; i < len(r.Attempts); i++ {
			if r.Attempts[i-1].N >= r.Attempts[i].N {
				t.Fatalf("attempts out of order: %+v", r.Attempts)
			}
		}
	})
}
