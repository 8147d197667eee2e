package slurm

import "testing"

// Dialect v0.0.38 and squeue show one word: a job that ends was UNKNOWN until its
// nodes were clean, and so was a het job that is requeued.
func TestFlagInsteadOfABaseState(t *testing.T) {
	for word, want := range map[string]State{"COMPLETING": Running, "CONFIGURING": Running, "REQUEUED": Pending, "TIMEOUT": Timeout, "DREAMING": "DREAMING", "CANCELLED by 1000": Cancelled,
		"STOPPED": Suspended, "EXPEDITING": Pending, "REVOKED": Revoked} {
		state, flags := BaseState(word)
		_, isFlag := Flags()[word]
		if state != want || (len(flags) == 1) != isFlag {
			t.Errorf("%s: %s %v, wanted %s", word, state, flags, want)
		}
	}
}
