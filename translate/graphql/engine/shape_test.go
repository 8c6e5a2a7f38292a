package engine

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// TestShape: documents have one shape if they differ in what literals hold, white space
// and comments, and different ones if they differ in anything else. What literals hold is
// no part of it.
func TestShape(t *testing.T) {
	const like = `mutation M($v: ID! = 1) { a: f(p: "secret", q: 1, r: [2.5, RED, null, $v], s: {t: """secret"""}) @x { ...G } } fragment G on T { u }`
	shape := func(source string) string {
		doc, err := parser.ParseQuery(&ast.Source{Input: source})
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		s, _ := shapeOf(doc)
		return s
	}
	if strings.Contains(shape(like), "secret") || strings.ContainsAny(shape(like), "0123456789") {
		t.Errorf("the shape %q has parts of literals", shape(like))
	}
	for _, by := range [][2]string{{`"secret", q`, `"a\"b#", q`}, {"q: 1", "q: 20"}, {"2.5", "-1e9"}, {`"""secret"""`, `""""""`}, {"{ u }", "# RED\n{,u,}\n"}} {
		if other := strings.Replace(like, by[0], by[1], 1); other == like || shape(other) != shape(like) {
			t.Errorf("%s has another shape", other)
		}
	}
	for _, by := range [][2]string{
		{`"secret", q`, "1, q"},
		{"q: 1", "q: 1.0"},
		{"q: 1", "q: ONE"},
		{`"""secret"""`, `"secret"`},
		{"2.5, ", ""},
		{"RED", "REDNULL"},
		{"RED, null", "R, EDnull"},
		{"null", "true"},
		{"$v]", "$w]"},
		{"ID!", "ID"},
		{"mutation", "query"},
		{"mutation M", "mutation N"},
		{"a: f", "f"},
		{"t:", "tt:"},
		{"@x", "@x @x"},
		{"@x", ""},
		{"...G", "...G u"},
		{"{ u }", "{ u v }"},
		{"{ u }", "{ uv }"},
		{"on T", "on U"},
		{"[2.5, RED, null, $v]", "[[2.5, RED, null, $v]]"},
	} {
		if other := strings.Replace(like, by[0], by[1], 1); other == like || shape(other) == shape(like) {
			t.Errorf("%s has the same shape", other)
		}
	}
}
