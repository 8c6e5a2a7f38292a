package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/config/fault"
)

const (
	// MaxSize is the maximum size of a file in bytes.
	MaxSize = 1 << 20
	// MaxDepth is the maximum nesting of lists and mappings.
	MaxDepth = 64
)

// source parses one file into a tree of [yaml.Node], and collects the faults of the file.
type source struct {
	name   string
	lines  [][]rune
	faults Errors
	at     map[string]place // position of the value at each path
}

func (s *source) fault(at place, path, hint, format string, args ...any) {
	s.faults = append(s.faults, Fault{
		File: s.name, Line: at.line, Column: at.col, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// parse returns the root node of the document. It returns nil if it has reported a fault that prevents parsing. A node of kind 0 has a
// fault that parse has reported. Line and Column of each node are the position to report in faults, which for a block collection or a
// missing value is the position of its key or dash.
func (s *source) parse(data []byte) *yaml.Node {
	if !s.readable(data, MaxSize) {
		return nil
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(slices.Clip(data), '\n') // so that a block scalar at the end of the file ends with a line break
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		s.lines = append(s.lines, []rune(line))
	}
	if i := slices.IndexFunc(s.lines, content); i >= 0 && s.lines[i][0] == '%' {
		s.fault(place{i + 1, 1}, "", "quote a string that begins with %", "directives are not supported")
		return nil
	}
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF), err == nil && kindOf(doc.Content[0]) == kindMissing:
		s.fault(place{1, 1}, "", "", "the file is empty")
		return nil
	case err != nil:
		s.syntax(data, err)
		return nil
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		s.fault(placeOf(&more), "", "", "a second YAML document begins here, a configuration is one")
		return nil
	case !errors.Is(err, io.EOF):
		s.syntax(data, err)
		return nil
	}
	s.node(doc.Content[0], place{1, 1}, "", 1)
	return doc.Content[0]
}

// content reports whether a line contains anything other than a comment.
func content(line []rune) bool {
	text := strings.TrimSpace(string(line))
	return text != "" && text[0] != '#'
}

var (
	// errorLine matches the line number in the text of parser errors. Parser errors have no type with a line field.
	errorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	// fromZero matches parser errors with 0-based line numbers, where line 0 is omitted. All other parser errors have 1-based line numbers.
	fromZero = regexp.MustCompile(`^did not find expected ('[-,]|<document|key|node)`)
)

// unaligned matches parser errors about a line that is indented differently from the previous lines of its collection. These errors contain
// the line number of the beginning of the collection.
var unaligned = regexp.MustCompile(`^did not find expected (key|'-' indicator|<document start>)$`)

// syntax reports an error of the YAML parser. Parser errors have a line but no column.
func (s *source) syntax(data []byte, err error) {
	m := errorLine.FindStringSubmatch(err.Error())
	message := err.Error()[len(m[0]):]
	line, _ := strconv.Atoi(m[1]) // "" becomes 0
	if fromZero.MatchString(message) {
		line++
	}
	line = min(max(line, 1), len(s.lines))
	if unaligned.MatchString(message) {
		line = s.wrongLine(data, line, message)
	}
	written := string(s.lines[line-1])
	text, hint := explained(message)
	begin := strings.TrimLeft(written, " ")
	if strings.HasPrefix(begin, "\t") {
		hint = "indent with spaces, not with tabs"
	}
	s.fault(place{line, 1 + len(written) - len(begin)}, "", hint, "not valid YAML: %s", text)
}

// wrongLine returns the first line at or after the line from with which the beginning of data produces the parser error message.
func (s *source) wrongLine(data []byte, from int, message string) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	n := from + sort.Search(len(s.lines)-from, func(n int) bool {
		var doc yaml.Node
		err := yaml.Unmarshal(bytes.Join(lines[:from+n], nil), &doc)
		return err != nil && strings.HasSuffix(err.Error(), message)
	})
	return min(n, len(s.lines))
}

// explained rewrites the text of a parser error in terms of a configuration file, and returns it with a hint.
func explained(message string) (text, hint string) {
	for _, e := range []struct{ message, text, hint string }{
		{
			"did not find expected key", "line is not aligned with the keys before it",
			"begin the keys of one mapping in the same column",
		},
		{
			"did not find expected '-' indicator", "line is not aligned with the entries before it",
			"begin the entries of one list with - in the same column",
		},
		{"did not find expected <document start>", "line does not belong to any key before it", "begin the keys of one mapping in the same column"},
		{"did not find expected ',' or ']'", "list in brackets is not closed", "write a comma between its entries and ] at its end"},
		{"did not find expected ',' or '}'", "mapping in braces is not closed", "write a comma between its entries and } at its end"},
		{
			"mapping values are not allowed in this context",
			"unexpected colon", "align the key with the keys before it, or quote a text that contains a colon and a space",
		},
		{"block sequence entries are not allowed in this context", "unexpected -", "begin the list on a new line"},
		{"could not find expected ':'", "key without a colon", "write key: value"},
		{"found character that cannot start any token", "text begins with a reserved character", "quote it"},
		{"found unexpected end of stream", "quoted text is not closed", "write the closing quote"},
		{"found unknown escape character", "unknown escape sequence in double quotes", "write \\\\ for a backslash"},
	} {
		if strings.HasPrefix(message, e.message) {
			return e.text, e.hint
		}
	}
	return message, ""
}

// readable checks the bytes of the file before parsing.
func (s *source) readable(data []byte, limit int) bool {
	before := len(s.faults)
	switch {
	case len(data) > limit:
		s.fault(place{}, "", "", "file has %d bytes, more than the limit of %d", len(data), limit)
		return false
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		s.fault(place{1, 1}, "", "save the file as UTF-8 without the mark", "file begins with a byte order mark")
		return false
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		s.fault(place{1, 1}, "", "save the file as UTF-8", "file is encoded in UTF-16")
		return false
	}
	at := place{1, 1}
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			s.fault(at, "", "", "byte 0x%02x is not valid UTF-8", data[0])
			return false
		case r == '\r' && len(data) > 1 && data[1] == '\n':
		case r != '\n' && r != '\t' && forbidden(r):
			s.fault(at, "", fmt.Sprintf(`write it as an escape in double quotes: "\u%04X"`, r), "character U+%04X is not allowed", r)
			return false
		}
		at.col++
		if r == '\n' {
			at = place{at.line + 1, 1}
		}
		data = data[n:]
	}
	return len(s.faults) == before
}

// forbidden reports whether r is invisible or easily mistaken for another character. This applies to control characters, line separators,
// bidirectional formatting characters and byte order marks.
func forbidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	}
	return false
}

// node prepares the node n at path. owner is the position of its key or dash.
func (s *source) node(n *yaml.Node, owner place, path string, depth int) {
	at := placeOf(n)
	if depth > MaxDepth {
		s.fault(at, path, "", "nested more than %d levels deep", MaxDepth)
		n.Kind = 0
	}
	if s.unsupported(n, path) && n.Anchor == "" {
		n.Kind = 0
	}
	s.at[path] = owner
	switch kindOf(n) {
	case kindMapping:
		s.mapping(n, path, depth)
	case kindList:
		for i, item := range n.Content {
			at := placeOf(item)
			if kindOf(item) == kindMissing {
				at.col-- // the parser sets the position after the dash
			}
			s.node(item, at, fault.Index(path, i), depth+1)
		}
	case kindMissing:
		at = owner
	case kindBroken:
	default:
		s.at[path] = at
		if n.Style == 0 && !s.written(n) {
			s.fault(owner, path, "quote it, or write it as a | block", "unquoted string must be on one line, without tabs")
			n.Kind = 0
		}
	}
	if (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && n.Style&yaml.FlowStyle == 0 {
		at = owner
	}
	n.Line, n.Column = at.line, at.col
}

// mapping prepares the entries of a mapping, and drops entries with faults.
func (s *source) mapping(n *yaml.Node, path string, depth int) {
	first := make(map[string]int, len(n.Content)/2)
	entries := n.Content
	n.Content = entries[:0]
	for i := 0; i < len(entries); i += 2 {
		key, value := entries[i], entries[i+1]
		at, here := placeOf(key), fault.Key(path, key.Value)
		if key.Kind != yaml.ScalarNode {
			here = path
		}
		switch before, duplicate := first[key.Value]; {
		case s.unsupported(key, here):
		case s.marked(at):
			s.fault(at, here, "", "keys marked with ? are not supported")
		case key.Tag == "!!merge":
			s.fault(at, here, "write the keys out", "merge keys are not supported")
		case kindOf(key) != kindString:
			s.fault(at, here, "quote it", "key must be a string")
		case key.Style == 0 && !s.written(key):
			s.fault(at, here, "quote it", "unquoted key must be on one line, without tabs")
		case duplicate:
			s.fault(at, here, "", "duplicate key, first at line %d", before)
		default:
			first[key.Value] = key.Line
			s.node(value, at, here, depth+1)
			n.Content = append(n.Content, key, value)
		}
	}
}

// unsupported returns true if a node uses a YAML feature that configurations may not use, and reports the fault.
func (s *source) unsupported(n *yaml.Node, path string) bool {
	at := placeOf(n)
	switch {
	case n.Kind == yaml.AliasNode:
		s.fault(at, path, "write the value out, or quote a string that begins with *", "aliases are not supported")
	case n.Anchor != "":
		s.fault(at, path, "write the value out, or quote a string that begins with &", "anchors are not supported")
	case s.begins(at, "!"):
		s.fault(at, path, "quote a string that begins with !", "tags are not supported")
	default:
		return false
	}
	return true
}

// marked reports whether a question mark precedes the key at a position.
func (s *source) marked(at place) bool {
	i := at.col - 2
	line := s.lines[at.line-1]
	for i >= 0 && (line[i] == ' ' || line[i] == '\t') {
		i--
	}
	return i >= 0 && line[i] == '?'
}

// written reports whether a plain scalar is on one line and contains no tabs. YAML parsers interpret other plain scalars differently.
func (s *source) written(n *yaml.Node) bool {
	return s.begins(placeOf(n), n.Value) && !strings.Contains(n.Value, "\t")
}

// begins reports whether the file has text at a position.
func (s *source) begins(at place, text string) bool {
	if at.line > len(s.lines) || at.col > len(s.lines[at.line-1]) {
		return text == ""
	}
	rest, want := s.lines[at.line-1][at.col-1:], []rune(text)
	return len(want) <= len(rest) && slices.Equal(rest[:len(want)], want)
}
