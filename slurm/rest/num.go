package rest

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// num is a number in any of the shapes that slurmrestd has used: 5, "5",
// null, "Infinity", {"set":true,"infinite":false,"number":5}, and the
// sentinels NO_VAL and INFINITE of slurm.h. What it cannot read is unset: one
// odd field must not lose a whole node list.
type num struct {
	value    float64
	set      bool
	infinite bool
}

// Sentinels of slurm.h, 32 and 64 bits. The 16-bit ones are legal values of
// wider fields and stay as they are.
const (
	noVal      = 4294967294
	infinite   = 4294967295
	noVal64    = 18446744073709551614
	infinite64 = 18446744073709551615
)

func (n *num) UnmarshalJSON(b []byte) error {
	*n = readNum(bytes.TrimSpace(b))
	return nil
}

func readNum(b []byte) num {
	if len(b) == 0 {
		return num{}
	}
	switch b[0] {
	case '{':
		var obj struct {
			Set      bool            `json:"set"`
			Infinite bool            `json:"infinite"`
			Number   json.RawMessage `json:"number"`
		}
		if json.Unmarshal(b, &obj) != nil {
			return num{}
		}
		if obj.Infinite { // Slurm sends set:false along with it
			return num{infinite: true}
		}
		if !obj.Set {
			return num{}
		}
		return readNum(bytes.TrimSpace(obj.Number))
	case '"':
		var s string
		if json.Unmarshal(b, &s) != nil {
			return num{}
		}
		return parseNum(s)
	}
	return parseNum(string(b))
}

func parseNum(s string) num {
	s = strings.TrimSpace(s)
	// The two 64-bit sentinels differ by less than a float64 can tell.
	switch s {
	case strconv.FormatUint(noVal64, 10):
		return num{}
	case strconv.FormatUint(infinite64, 10):
		return num{infinite: true}
	}
	switch strings.ToLower(s) {
	case "infinity", "inf", "infinite", "unlimited":
		return num{infinite: true}
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil, math.IsNaN(v), v == noVal:
		return num{}
	case math.IsInf(v, 0), v == infinite:
		return num{infinite: true}
	}
	return num{value: v, set: true}
}

// int is the value, 0 when unset, infinite or beyond ±2^53.
func (n num) int() int {
	if !n.set || math.Abs(n.value) > 1<<53 {
		return 0
	}
	return int(n.value)
}

// count is int without negative values.
func (n num) count() int { return max(0, n.int()) }

// time reads seconds since the epoch; 0 is no time.
func (n num) time() time.Time {
	if s := n.count(); s > 0 && s < 1<<40 {
		return time.Unix(int64(s), 0)
	}
	return time.Time{}
}

// text is a string that may come as null, a number or something else, which
// is then kept as its raw text.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case bytes.Equal(b, []byte("null")):
		*t = ""
	case json.Unmarshal(b, &s) == nil:
		*t = text(s)
	default:
		*t = text(b)
	}
	return nil
}

// csv is a list that comes as "a,b", ["a","b"], {} or null.
type csv []string

func (c *csv) UnmarshalJSON(b []byte) error {
	*c = nil
	var list []text
	if json.Unmarshal(b, &list) == nil {
		for _, item := range list {
			*c = append(*c, string(item))
		}
	} else {
		var s string
		_ = json.Unmarshal(b, &s) // {} and anything else: an empty list
		*c = strings.Split(s, ",")
	}
	for i := range *c {
		(*c)[i] = strings.TrimSpace((*c)[i])
	}
	if *c = slices.DeleteFunc(*c, func(s string) bool { return s == "" }); len(*c) == 0 {
		*c = nil
	}
	return nil
}

// words is a list of states or flags: ["A","B"], "a+b" or "A", upper-cased.
type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	var list csv
	_ = list.UnmarshalJSON(b)
	*w = nil
	for _, item := range list {
		for word := range strings.SplitSeq(item, "+") {
			if word = strings.ToUpper(strings.TrimSpace(word)); word != "" {
				*w = append(*w, word)
			}
		}
	}
	return nil
}

// maybe is an object in some dialects and something else in others; then it
// stays empty.
type maybe[T any] struct{ v T }

func (m *maybe[T]) UnmarshalJSON(b []byte) error {
	var v T
	if json.Unmarshal(b, &v) == nil {
		m.v = v
	}
	return nil
}

func (n num) text() string { return strconv.Itoa(n.count()) }
