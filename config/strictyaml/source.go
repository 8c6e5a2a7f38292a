package strictyaml

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of what is read. A configuration stays far below them; beyond, the YAML parser's cost grows faster than its input.
const (
	// MaxSize is the size of the largest file, in bytes.
	MaxSize = 1 << 20
	// MaxDepth is how deep lists and mappings may be nested.
	MaxDepth = 64

	maxTokens = 100_000
	// maxIndent bounds block nesting before parsing: each level is at least one column further right.
	maxIndent = 512
)

// source is one file on its way from bytes to a tree, and the faults found so far.
type source struct {
	name   string
	text   string
	faults Errors

	lines [][]rune // of text, made when first asked for
}

func (s *source) fault(at place, path, hint, format string, args ...any) {
	s.faults = append(s.faults, Fault{
		File: s.name, Line: at.line, Column: at.col, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// parse returns the one document of data, or nil when faults tell why there is none.
func (s *source) parse(data []byte) ast.Node {
	if !s.readable(data) {
		return nil
	}
	// Some positions behind CR LF inside quoted text come out wrong, and YAML reads both line ends the same.
	// Block scalars that end with the file, and not with a line, come out wrong too.
	s.text = strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") + "\n"
	var doc ast.Node
	if err := guard(func() error {
		tokens := lexer.Tokenize(s.text)
		if !s.plain(tokens) {
			return nil
		}
		file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
		if err == nil && len(file.Docs) > 0 {
			doc = file.Docs[0].Body
		}
		return err
	}); err != nil {
		s.syntax(err)
		return nil
	}
	if doc == nil && len(s.faults) == 0 {
		s.fault(place{1, 1}, "", "", "the file is empty")
	}
	return doc
}

// guard reports a panic of the YAML parser as an error: a hostile file must not end the program.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	return f()
}

// syntax records an error of the YAML parser.
func (s *source) syntax(err error) {
	e, ok := err.(yaml.Error) //nolint:errorlint // the parser never wraps, and the interface is not an error type errors.As takes well
	if !ok || e.GetToken() == nil {
		s.fault(place{1, 1}, "", "", "not valid YAML: %v", err)
		return
	}
	at, hint := s.placeOf(e.GetToken()), ""
	message := strings.ReplaceAll(e.GetMessage(), "\t", "tab")
	if line := string(s.line(at.line)); strings.HasPrefix(strings.TrimLeft(line, " "), "\t") {
		hint = "indent with spaces, not with tabs"
	}
	s.fault(at, "", hint, "not valid YAML: %s", message)
}

// readable checks the bytes before any YAML is looked for.
func (s *source) readable(data []byte) bool {
	before := len(s.faults)
	switch {
	case len(data) > MaxSize:
		s.fault(place{}, "", "", "the file has %d bytes, at most %d are read", len(data), MaxSize)
		return false
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		s.fault(place{1, 1}, "", "save it as UTF-8 without one", "the file begins with a byte order mark")
		return false
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		s.fault(place{1, 1}, "", "save it as UTF-8", "the file is UTF-16")
		return false
	}
	at := place{1, 1}
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			s.fault(at, "", "", "byte 0x%02x is not UTF-8", data[0])
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

// forbidden tells characters that a reader of the file cannot see or that make it look like another: control characters, other line
// ends, bidirectional formatting, byte order marks.
func forbidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	}
	return false
}

// plain refuses the parts of YAML that configuration does not use, and what would cost the parser too much.
func (s *source) plain(tokens token.Tokens) bool {
	before := len(s.faults)
	if len(tokens) > maxTokens {
		s.fault(place{}, "", "", "the file has more than %d YAML tokens", maxTokens)
		return false
	}
	depth, started, ended := 0, false, false
	for _, t := range tokens {
		if t.Type == token.CommentType {
			continue
		}
		at := s.placeOf(t)
		if what, hint := unsupported(t); what != "" {
			s.fault(at, "", hint, "%s are not supported", what)
		}
		if t.Type == token.DirectiveType {
			return false
		}
		if ended || started && t.Type == token.DocumentHeaderType {
			s.fault(at, "", "", "a second YAML document begins here, a configuration is one")
			return false
		}
		switch t.Type { //nolint:exhaustive // only brackets and document ends are counted
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.DocumentEndType:
			ended = true
		}
		if depth > MaxDepth || depth == 0 && tooFarRight(t) {
			s.fault(at, "", "", "nested deeper than %d levels", MaxDepth)
			return false
		}
		started = true
	}
	return len(s.faults) == before
}

// tooFarRight tells a block list entry or key at a column that only absurd nesting reaches.
func tooFarRight(t *token.Token) bool {
	if t.Type == token.MappingValueType && t.Prev != nil {
		t = t.Prev
	} else if t.Type != token.SequenceEntryType {
		return false
	}
	return t.Position.Column > maxIndent
}

// unsupported names the feature that a token belongs to, if it is one we refuse.
func unsupported(t *token.Token) (what, hint string) {
	switch t.Type { //nolint:exhaustive // all other tokens are plain YAML
	case token.AnchorType:
		return "anchors", "write the value out, or quote text that begins with &"
	case token.AliasType:
		return "aliases", "write the value out, or quote text that begins with *"
	case token.MergeKeyType:
		return "merge keys", "write the keys out"
	case token.TagType:
		return "tags", "quote text that begins with !"
	case token.MappingKeyType:
		return "keys marked with ?", ""
	case token.DirectiveType:
		return "directives", "quote text that begins with %"
	}
	return "", ""
}

// placeOf is where a token begins.
func (s *source) placeOf(t *token.Token) place {
	at, _ := s.find(t)
	return at
}

// find is where a token begins, and whether it is written there as it was read. The lexer's columns are off behind tabs and before
// trailing spaces, so the token is looked for in its line, and the nearest is believed.
func (s *source) find(t *token.Token) (place, bool) {
	if t == nil || t.Position == nil {
		return place{}, false
	}
	const farthest = 200
	at := place{t.Position.Line, t.Position.Column}
	line, text := s.line(at.line), []rune(t.Value)
	if quoted(t) {
		text = []rune(t.Origin[len(t.Origin)-1:])
	}
	if len(text) == 0 || t.Type == token.ImplicitNullType {
		return at, true
	}
	for off := range farthest {
		for _, col := range []int{at.col - off, at.col + off} {
			if end := col - 1 + len(text); col >= 1 && end <= len(line) && slices.Equal(line[col-1:end], text) {
				return place{at.line, col}, quoted(t) || ends(line[end:])
			}
		}
	}
	return at, false
}

// ends tells whether what follows a plain scalar in its line really is no part of it; the lexer loses text behind tabs.
func ends(rest []rune) bool {
	i := slices.IndexFunc(rest, func(r rune) bool { return r != ' ' && r != '\t' })
	return i < 0 || strings.ContainsRune(",]}:#", rest[i])
}

// line is line n, from 1, without its end; nil when there is none.
func (s *source) line(n int) []rune {
	if s.lines == nil {
		for l := range strings.SplitSeq(s.text, "\n") {
			s.lines = append(s.lines, []rune(l))
		}
	}
	if n < 1 || n > len(s.lines) {
		return nil
	}
	return s.lines[n-1]
}
