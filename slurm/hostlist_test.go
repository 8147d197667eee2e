package slurm

import (
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	for list, want := range map[string]string{
		"":                        "",
		"x":                       "x",
		"n[001-003,7],m1":         "n001 n002 n003 n7 m1",
		"rack[0-1]_blade[0-1]":    "rack0_blade0 rack0_blade1 rack1_blade0 rack1_blade1",
		"a-b-g4-[1-4]":            "a-b-g4-1 a-b-g4-2 a-b-g4-3 a-b-g4-4",
		"c1009a-s17,c1010a-s11":   "c1009a-s17 c1010a-s11",
		"n[08-11]":                "n08 n09 n10 n11",
		"n[8-11]":                 "n8 n9 n10 n11",
		"n[1-2]-ib":               "n1-ib n2-ib",
		"h200-[1-2],,h100-1":      "h200-1 h200-2 h100-1",
		"n[099-101]":              "n099 n100 n101",
		"n1,n1":                   "n1 n1",
		"a[1-2]b[3-4]c[5-6]":      "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6",
		"n[1-2] m\n":              "n1 n2 m",
		"r[1-2]c[01-02]n":         "r1c01n r1c02n r2c01n r2c02n",
		"n[000000000000000001-2]": "n000000000000000001 n000000000000000002",
	} {
		got, err := Expand(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("Expand(%q) = %q, %v; want %q", list, got, err, want)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	for _, list := range []string{
		"n[1-", "n1]", "n[1-[2]]", "n[]", "n[a-b]", "n[3-1]", "n[1-2", "n[-3]", "n[1--3]",
		"n[0-999999999]", "n[0-999][0-999]", "n[9999999999999999999]",
	} {
		if got, err := Expand(list); err == nil {
			t.Errorf("Expand(%q) = %d names, want an error", list, len(got))
		}
	}
}

func TestCompress(t *testing.T) {
	for names, want := range map[string]string{
		"":                       "",
		"n1":                     "n1",
		"n1 n2 n3 n7 m1":         "n[1-3,7],m1",
		"n001 n002 n003 n7":      "n[001-003,7]",
		"n08 n09 n10 n11":        "n[08-11]",
		"n9 n10 n8":              "n[8-10]",
		"h200-1 h100-1 h200-2":   "h200-[1-2],h100-1",
		"n2 n2 n2":               "n2",
		"login":                  "login",
		"n n1":                   "n,n1",
		"c12345678901234567890x": "c12345678901234567890x",
	} {
		if got := Compress(strings.Fields(names)); got != want {
			t.Errorf("Compress(%q) = %q, want %q", names, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"n[001-003,7],m1", "rack[0-1]_blade[0-1]", "n[1-", "n[0-99999]", "[[]],]", "n[08-11]x[1]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := Expand(list)
		if err != nil {
			return
		}
		if len(names) > MaxHosts {
			t.Fatalf("%d names", len(names))
		}
		again, err := Expand(Compress(names))
		if err != nil {
			t.Fatalf("Compress(%q) does not expand: %v", names, err)
		}
		slices.Sort(names)
		slices.Sort(again)
		if !slices.Equal(slices.Compact(names), again) {
			t.Fatalf("%q came back as %q", names, again)
		}
	})
}
