package strictyaml

import (
	"regexp"
	"strings"
)

// The core schema of YAML 1.2.2, §10.3.2, and beside it what YAML 1.1 or a lenient reader takes for a number.
var (
	integerText = regexp.MustCompile(`^([-+]?(0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	floatText   = regexp.MustCompile(`^([-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	oddText     = regexp.MustCompile(`^[-+]?(0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)$`)
)

// resolve is the kind of a plain scalar.
func resolve(text string) kind {
	switch text {
	case "":
		return kindMissing
	case "~", "null", "Null", "NULL":
		return kindNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return kindBool
	}
	switch {
	case integerText.MatchString(text):
		return kindInteger
	case floatText.MatchString(text):
		return kindFloat
	case oddText.MatchString(text):
		return kindOdd
	}
	return kindString
}

// isTrue is the value of a scalar of kindBool.
func isTrue(text string) bool { return strings.EqualFold(text, "true") }
