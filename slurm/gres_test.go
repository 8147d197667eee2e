package slurm

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseGRES(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"(null)":                          "",
		"N/A":                             "",
		"gpu:8":                           "gpu:8",
		"gpu:0":                           "",
		"gpu":                             "gpu:1",
		"gpu:h200":                        "gpu:h200:1",
		"gpu:h200:8(S:0-1)":               "gpu:h200:8",
		"gpu:h100:3(IDX:0-2)":             "gpu:h100:3",
		"gpu:h100:3(IDX:0,2-3),gpu:l4:1":  "gpu:h100:3 gpu:l4:1",
		"gpu:h200:0(IDX:N/A)":             "",
		"gres:gpu:h200:2":                 "gpu:h200:2",
		"gres/gpu:h200:2":                 "gpu:h200:2",
		"gres/gpu:2":                      "gpu:2",
		"gpu:no_consume:4":                "gpu:4",
		"gpu:ascend910b:8,shard:16":       "gpu:ascend910b:8 shard:16",
		"bandwidth:lustre:4K":             "bandwidth:lustre:4096",
		"gpu:a100:1,gpu:a100:2":           "gpu:a100:3",
		"gpu:2,gpu:h200:2":                "gpu:2 gpu:h200:2",
		"cpu=1,mem=1000M,node=1":          "",
		"license/matlab=4,gres/gpu=2":     "gpu:2",
		"gres/gpu=4,gres/gpu:h200=2":      "gpu:h200:2 gpu:2",
		"gres/gpu:h200=2,gres/gpu=2":      "gpu:h200:2",
		"gpu:h200:x":                      "",
		"gres/gpu:a=1,gres/gpu:b=2,cpu=9": "gpu:a:1 gpu:b:2",
		"cpu=1,mem=1000M,gres/gpu=2,gres/gpu:h200=2": "gpu:h200:2",
	} {
		got := strings.Trim(fmt.Sprint(ParseGRES(text)), "[]")
		if got != want {
			t.Errorf("ParseGRES(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzParseGRES(f *testing.F) {
	for _, seed := range []string{"gpu:h200:8(S:0-1)", "gres/gpu=2,gres/gpu:h200=2", "gpu:9999999P,gpu:9999999P", "(((", "gres/", "gres:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, g := range ParseGRES(text) {
			if g.Name == "" || g.Count <= 0 {
				t.Fatalf("ParseGRES(%q) holds %+v", text, g)
			}
		}
	})
}
