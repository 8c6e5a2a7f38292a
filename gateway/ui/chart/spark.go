package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Measures of sparklines and share bars, in units of their own.
const (
	sparkWidth  = 100.0
	sparkHeight = 24.0
)

// spark is a small line, or a bar.
type spark struct{ Line, Area, Label, Width string }

// Sparkline draws values as a small line without axes. Its label has the lowest, the highest and the last value. It is empty without
// two values.
func Sparkline(values []float64, u Unit) template.HTML {
	low, high, last, n := math.Inf(1), math.Inf(-1), math.NaN(), 0
	for _, v := range values {
		if present(v) {
			low, high, last, n = min(low, v), max(high, v), v, n+1
		}
	}
	if n < 2 {
		return ""
	}
	top := max(high, 0)
	if top == 0 {
		top = 1
	}
	var line strings.Builder
	var first, end float64
	drawing := false
	for i, v := range values {
		if !present(v) {
			drawing = false
			continue
		}
		x := float64(i) / float64(len(values)-1) * sparkWidth
		command := "L"
		if !drawing {
			command = "M"
		}
		if line.Len() == 0 {
			first = x
		}
		end, drawing = x, true
		fmt.Fprintf(&line, "%s%s %s", command, number(x), number(1+(sparkHeight-2)*(1-max(0, v)/top)))
	}
	s := spark{Line: line.String(), Label: "lowest " + u.Format(low) + ", highest " + u.Format(high) + ", last " + u.Format(last) + " " + u.Name}
	if strings.Count(s.Line, "M") == 1 {
		s.Area = fmt.Sprintf("%sL%s %sL%s %sZ", s.Line, number(end), number(sparkHeight), number(first), number(sparkHeight))
	}
	return execute("spark", s)
}

// Share draws a share from 0 to 1 as a bar. The number beside it is for readers, so the bar has no label.
func Share(share float64) template.HTML {
	return execute("share", spark{Width: number(min(max(0, orZero(share)), 1) * 100)})
}
