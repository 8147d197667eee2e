package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// Num is a number in any of the shapes that slurmrestd has used: 5, "5",
// null, "Infinity", {"set":true,"infinite":false,"number":5}, and the
// sentinels NO_VAL and INFINITE of slurm.h. What it cannot read is unset: one
// odd field must not lose a whole node list.
type Num struct {
	Value    float64 // 0 unless Set
	Set      bool
	Infinite bool // without limit; Set is false then
}

// Sentinels of slurm.h, 32 and 64 bits. The 16-bit ones are legal values of
// wider fields and stay as they are.
const (
	noVal      = 4294967294
	infinite   = 4294967295
	noVal64    = 18446744073709551614
	infinite64 = 18446744073709551615
)

// UnmarshalJSON never fails.
func (n *Num) UnmarshalJSON(b []byte) error {
	*n = readNum(bytes.TrimSpace(b))
	return nil
}

func readNum(b []byte) Num {
	if len(b) == 0 {
		return Num{}
	}
	switch b[0] {
	case '{':
		var obj struct {
			Set      bool            `json:"set"`
			Infinite bool            `json:"infinite"`
			Number   json.RawMessage `json:"number"`
		}
		if json.Unmarshal(b, &obj) != nil {
			return Num{}
		}
		if obj.Infinite { // Slurm sends set:false along with it
			return Num{Infinite: true}
		}
		if !obj.Set {
			return Num{}
		}
		return readNum(bytes.TrimSpace(obj.Number))
	case '"':
		var s string
		if json.Unmarshal(b, &s) != nil {
			return Num{}
		}
		return ParseNum(s)
	}
	return ParseNum(string(b))
}

// ParseNum reads a number in text: digits, "Infinity", "UNLIMITED", a sentinel.
func ParseNum(s string) Num {
	s = strings.TrimSpace(s)
	// The two 64-bit sentinels differ by less than a float64 can tell.
	switch s {
	case strconv.FormatUint(noVal64, 10):
		return Num{}
	case strconv.FormatUint(infinite64, 10):
		return Num{Infinite: true}
	}
	switch strings.ToLower(s) {
	case "infinity", "inf", "infinite", "unlimited":
		return Num{Infinite: true}
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil, math.IsNaN(v), v == noVal:
		return Num{}
	case math.IsInf(v, 0), v == infinite:
		return Num{Infinite: true}
	}
	return Num{Value: v, Set: true}
}

// Int is the value, 0 when unset, infinite or beyond ±2^53.
func (n Num) Int() int {
	if !n.Set || math.Abs(n.Value) > 1<<53 {
		return 0
	}
	return int(n.Value)
}

// Count is Int without negative values.
func (n Num) Count() int { return max(0, n.Int()) }

// Time reads seconds since the epoch; 0 is no time.
func (n Num) Time() time.Time {
	if s := n.Count(); s > 0 && s < 1<<40 {
		return time.Unix(int64(s), 0)
	}
	return time.Time{}
}
