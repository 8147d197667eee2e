package fault

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"mem", "time", "tags", "account", "requeue"}
	for name, want := range map[string]string{
		"tiem": "time", "tme": "time", "acount": "account", "reqeue": "requeue", "tag": "tags", "zzzzzz": "", "": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
