package recipes

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// scalar is a plain YAML word, read.
type scalar struct {
	kind    Type
	json    string
	differs bool
}

// The core schema of YAML 1.2 (section 10.3.2).
var (
	coreNull  = regexp.MustCompile(`^(null|Null|NULL|~|)$`)
	coreBool  = regexp.MustCompile(`^(true|True|TRUE|false|False|FALSE)$`)
	coreInt   = regexp.MustCompile(`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	coreFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	coreNoNum = regexp.MustCompile(`^([-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN)$`)
)

// What PyYAML, the reader of nearly every training script, takes for numbers
// and other values by the rules of YAML 1.1.
var (
	oldInt   = regexp.MustCompile(`^([-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$`)
	oldFloat = regexp.MustCompile(`^([-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?)$`)
	oldOther = regexp.MustCompile(`^(yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|=|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*)$`)
	oldOctal = regexp.MustCompile(`^[-+]?0[0-7_]+$`)
)

func readScalar(n *yaml.Node) (scalar, error) {
	text := n.Value
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" {
		return scalar{}, fmt.Errorf("the tag %s is not read; write the value without it", n.Tag)
	}
	switch {
	case quotedStyle(n):
		return scalar{Str, jsonText(text), false}, nil
	case coreNull.MatchString(text):
		return scalar{"", "null", false}, nil
	case coreBool.MatchString(text):
		return scalar{Bool, strings.ToLower(text), false}, nil
	case coreNoNum.MatchString(text):
		return scalar{Float, "", false}, nil
	case coreInt.MatchString(text), coreFloat.MatchString(text):
		return readNumber(text)
	case oldInt.MatchString(text), oldFloat.MatchString(text):
		return scalar{}, fmt.Errorf("%s is a number to some YAML readers and a text to others; write it without _ and in decimals, or in quotes", text)
	}
	return scalar{Str, jsonText(text), oldOther.MatchString(text)}, nil
}

// quotedStyle says that a scalar is a text whatever it looks like.
func quotedStyle(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0
}

func readNumber(text string) (scalar, error) {
	s := scalar{kind: Float}
	if coreInt.MatchString(text) {
		s.kind = Int
	}
	old := oldInt.MatchString(text) || oldFloat.MatchString(text)
	switch digits := strings.TrimLeft(text, "+-"); {
	case oldOctal.MatchString(text) && digits != "00":
		return s, fmt.Errorf("%s is an octal number to some YAML readers and a decimal to others; write it without the leading 0, or in quotes", text)
	case jsonNumber.MatchString(text):
		s.json, s.differs = text, !old
	case !old:
		return s, fmt.Errorf("%s is a number to some YAML readers and a text to others%s, or put it in quotes", text, rewrite(text))
	case strings.HasPrefix(digits, "0x"):
		n, err := strconv.ParseUint(digits, 0, 64)
		if err != nil {
			return s, fmt.Errorf("%s is too large", text)
		}
		s.json = strconv.FormatUint(n, 10)
	default: // .5 and 1. and +1: the same to all, only JSON has no such form
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return s, fmt.Errorf("%s is too large", text)
		}
		s.json = strconv.FormatFloat(n, 'g', -1, 64)
	}
	return s, nil
}

// listJSON is a list, or a mapping in a list, as JSON.
func listJSON(n *yaml.Node, budget *int, depth int) (text string, differs bool, err error) {
	n = follow(n)
	if *budget--; *budget < 0 || depth > 64 {
		return "", false, errors.New("too long or nested too deeply")
	}
	if n.Kind == yaml.ScalarNode {
		s, err := readScalar(n)
		if err == nil && s.json == "" {
			err = fmt.Errorf("%s cannot stand in a list", n.Value)
		}
		return s.json, s.differs, err
	}
	step, open, end := 1, "[", "]"
	if n.Kind == yaml.MappingNode {
		step, open, end = 2, "{", "}"
	}
	var items []string
	for i := 0; i+step-1 < len(n.Content); i += step {
		item, d, err := listJSON(n.Content[i+step-1], budget, depth+1)
		if err != nil {
			return "", false, err
		}
		if step == 2 {
			if n.Content[i].Kind != yaml.ScalarNode {
				return "", false, errors.New("a key is a text")
			}
			item = jsonText(n.Content[i].Value) + ":" + item
		}
		items, differs = append(items, item), differs || d
	}
	return open + strings.Join(items, ",") + end, differs, nil
}
