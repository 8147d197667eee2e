package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Decode reads a body into v. v0.0.39 to .41 may print bare Infinity and NaN,
// which is no JSON (SchedMD bug 20817): they are replaced and read again. A part
// of the wrong kind, such as {} for a list, stays empty; a body that is no
// object at all is an error.
func Decode(body []byte, v any) error {
	err := json.Unmarshal(body, v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		if cleaned := clean(body); !bytes.Equal(cleaned, body) {
			err = json.Unmarshal(cleaned, v)
		}
	}
	var odd *json.UnmarshalTypeError
	if errors.As(err, &odd) && odd.Field != "" {
		return nil
	}
	return err
}

// bare are the words that C's printf makes of non-finite numbers, longest first.
var bare = [][]byte{[]byte("Infinity"), []byte("infinity"), []byte("inf"), []byte("NaN"), []byte("nan")}

// clean replaces bare non-finite numbers outside strings: no limit by
// "Infinity", which Num reads, the others by null. It returns body itself when
// there are none.
func clean(body []byte) []byte {
	var out []byte
	inString, from := false, 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == 'I' || c == 'i' || c == 'N' || c == 'n'):
			for _, word := range bare {
				if !bytes.HasPrefix(body[i:], word) {
					continue
				}
				end, instead := i, `"Infinity"`
				if end > from && body[end-1] == '-' {
					end, instead = end-1, "null"
				}
				if c == 'N' || c == 'n' {
					instead = "null"
				}
				out = append(append(out, body[from:end]...), instead...)
				i += len(word) - 1
				from = i + 1
				break
			}
		}
	}
	if from == 0 {
		return body
	}
	return append(out, body[from:]...)
}
