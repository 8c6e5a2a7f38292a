package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// Export holds the notes of an export, by kind and id.
type Export struct {
	notes map[string]map[string]note
	// Empty counts, by kind, entries without anything worth remembering.
	Empty map[string]int
	// Faults tells, in order, which entries were left out and why.
	Faults []EntryError
}

// note is a record of translate's, as JSON members.
type note map[string]any

// EntryError is one entry that was left out.
type EntryError struct {
	// Line is where the entry begins, from 1.
	Line int
	// Path is where the fault is, such as endpoints[3].templateId.
	Path   string
	Reason string
}

// Error implements error.
func (f *EntryError) Error() string { return fmt.Sprintf("%d: %s: %s", f.Line, f.Path, f.Reason) }

// sections maps the members of an export to the kinds of notes, and to the
// readers of their entries.
func sections() map[string]section {
	return map[string]section{
		"endpoints": {translate.KindEndpoint, readEndpoint},
		"templates": {translate.KindTemplate, readTemplate},
		"pods":      {translate.KindPod, readPod},
	}
}

type section struct {
	kind string
	read func(*entry) any
}

// Kinds lists the kinds of notes an export holds, in the order of reports.
func Kinds() []string {
	return []string{translate.KindEndpoint, translate.KindTemplate, translate.KindPod}
}

// Parse reads an export. It fails when the text is not one as a whole; faults
// of single entries are in the result.
func Parse(data []byte) (*Export, error) {
	p := &parser{data: data, out: &Export{notes: make(map[string]map[string]note), Empty: make(map[string]int)}, seen: make(map[string]string)}
	for _, kind := range Kinds() {
		p.out.notes[kind] = make(map[string]note)
	}
	p.dec = json.NewDecoder(bytes.NewReader(data))
	p.dec.UseNumber()
	if err := p.document(); err != nil {
		return nil, p.locate(err)
	}
	return p.out, nil
}

// parser reads one document token by token, to know where entries are.
type parser struct {
	data []byte
	dec  *json.Decoder
	out  *Export
	seen map[string]string // path by kind and id
}

var errShape = errors.New(`want an object with the arrays "endpoints", "templates" and "pods", each v1's answer as it came`)

func (p *parser) document() error {
	if err := p.expect('{'); err != nil {
		return err
	}
	done := map[string]bool{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		s, known := sections()[name]
		if !known || done[name] {
			return fmt.Errorf("member %.40q: %w", name, errShape)
		}
		done[name] = true
		if err := p.section(name, s); err != nil {
			return err
		}
	}
	if _, err := p.dec.Token(); err != nil {
		return err
	}
	if len(done) == 0 {
		return errShape
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the export")
	}
	return nil
}

func (p *parser) expect(delim json.Delim) error {
	token, err := p.dec.Token()
	if err == nil && token != delim {
		err = errShape
	}
	return err
}

func (p *parser) section(name string, s section) error {
	if err := p.expect('['); err != nil {
		return err
	}
	for i := 0; p.dec.More(); i++ {
		e := &entry{path: fmt.Sprintf("%s[%d]", name, i), line: p.line(p.next())}
		if err := p.dec.Decode(&e.value); err != nil {
			return err
		}
		p.take(s, e)
	}
	_, err := p.dec.Token()
	return err
}

// take adds an entry to the notes.
func (p *parser) take(s section, e *entry) {
	id := e.id()
	read := s.read(e)
	if first, twice := p.seen[s.kind+" "+id]; twice && e.fault == nil {
		e.fail("id", "%q is at %s already", id, first)
	}
	if e.fault != nil {
		p.out.Faults = append(p.out.Faults, *e.fault)
		return
	}
	p.seen[s.kind+" "+id] = e.path
	n := members(read)
	if len(n) == 0 {
		p.out.Empty[s.kind]++
		return
	}
	p.out.notes[s.kind][id] = n
}

// members turns a note into its JSON members; empty ones are left out.
func members(v any) note {
	b, err := json.Marshal(v)
	if err != nil { // notes are texts and numbers
		panic(err)
	}
	var n note
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&n); err != nil {
		panic(err)
	}
	return n
}

// next is where the next value begins.
func (p *parser) next() int64 {
	offset := p.dec.InputOffset()
	for offset < int64(len(p.data)) && strings.IndexByte(" \t\r\n,:", p.data[offset]) >= 0 {
		offset++
	}
	return offset
}

func (p *parser) line(offset int64) int {
	return 1 + bytes.Count(p.data[:min(offset, int64(len(p.data)))], []byte("\n"))
}

// locate says in which line reading ended.
func (p *parser) locate(err error) error {
	offset := p.dec.InputOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the text ends too soon")
	}
	return fmt.Errorf("%d: %w", p.line(offset), err)
}
