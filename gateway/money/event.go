package money

import (
	"bytes"
	"io"
	"strings"
)

// event reads the data of one server-sent event (WHATWG HTML, section 9.2.6): the values of its data fields, separated by line feeds.
// In contrast to the standard, an unfinished event at the end of the stream is included.
type event struct {
	in *feed
	// name is the beginning of the event type. failed is set by a field named "error", as sent by llama.cpp. done is set by the data
	// "[DONE]", which is not part of the result.
	name         string
	failed, done bool

	// head is the beginning of a line's value that was read ahead. value is set if more of the value may follow. data is the number of
	// data fields read. over is set after the empty line.
	head  []byte
	value bool
	data  int
	over  bool
	// cr is set if the last line ended with CR: a following LF belongs to that line end.
	cr bool
}

const (
	// maxField is the number of bytes of a field name that are read.
	maxField = 16
	// maxName is the number of bytes of an event type, or of the beginning of a value, that are kept.
	maxName = 64
)

// next advances to the data of the next event. It returns false at the end of the stream.
func (e *event) next() bool {
	*e = event{in: e.in, cr: e.cr}
	_, err := e.in.peek()
	return err == nil
}

// whole skips the event and returns its data if the event has arrived completely and is one short data field with an object, possibly after
// an event type, as most events are. Otherwise it returns nil.
func (e *event) whole() []byte {
	text, _, found := bytes.Cut(e.in.part[:min(len(e.in.part), maxString)], []byte("\n\n"))
	name, line := []byte(nil), text
	if bytes.HasPrefix(text, []byte("event: ")) {
		name, line, _ = bytes.Cut(text[len("event: "):], []byte("\n"))
	}
	if !found || e.cr || len(name) > maxName || !bytes.HasPrefix(line, []byte("data: {")) || bytes.IndexByte(line, '\n') >= 0 ||
		bytes.IndexByte(text, '\r') >= 0 {
		return nil
	}
	e.name = string(name)
	e.in.skip(len(text) + len("\n\n"))
	return line[len("data: "):]
}

func (e *event) peek() ([]byte, error) {
	for {
		switch {
		case len(e.head) > 0:
			return e.head, nil
		case e.value:
			if part := e.rest(); len(part) > 0 {
				return part, nil
			}
			e.value = false
		case e.over || !e.field():
			return nil, io.EOF
		}
	}
}

func (e *event) skip(n int) {
	if len(e.head) > 0 {
		e.head = e.head[n:]
		return
	}
	e.in.skip(n)
}

// rest returns bytes of the current line. At the end of the line it skips the line end and returns nothing.
func (e *event) rest() []byte {
	part, err := e.in.peek()
	if err != nil {
		return nil
	}
	if e.cr && part[0] == '\n' {
		e.cr = false
		e.in.skip(1)
		return e.rest()
	}
	e.cr = false
	at := bytes.IndexAny(part, "\r\n")
	if at < 0 {
		return part
	}
	if at == 0 {
		e.cr = part[0] == '\r'
		e.in.skip(1)
	}
	return part[:at]
}

// read returns the beginning of the current line: at most limit bytes, and only the bytes before sep. It skips sep. If sep is 0, the line
// is read without a separator. ended reports whether the line has ended.
func (e *event) read(limit int, sep byte) (text []byte, ended bool) {
	for len(text) < limit {
		part := e.rest()
		if len(part) == 0 {
			return text, true
		}
		part = part[:min(len(part), limit-len(text))]
		if at := bytes.IndexByte(part, sep); sep != 0 && at >= 0 {
			e.in.skip(at + 1)
			return append(text, part[:at]...), false
		}
		text = append(text, part...)
		e.in.skip(len(part))
	}
	return text, false
}

// field reads a line up to the value of a data field. It returns false at the end of the event.
func (e *event) field() bool {
	if _, err := e.in.peek(); err != nil {
		return false
	}
	name, ended := e.read(maxField, ':')
	if ended && len(name) == 0 {
		e.over = true
		return false
	}
	head, ended := e.begin(ended)
	switch string(name) {
	case "data":
		return e.begins(head, ended)
	case "event":
		e.name = string(head)
	case "error":
		e.failed = true
	}
	for !ended {
		part := e.rest()
		ended = len(part) == 0
		e.in.skip(len(part))
	}
	return true
}

// begin returns the beginning of a field's value without the leading space.
func (e *event) begin(ended bool) ([]byte, bool) {
	if ended {
		return nil, true
	}
	head, ended := e.read(maxName, 0)
	return bytes.TrimPrefix(head, []byte(" ")), ended
}

// begins makes the value of a data field the next part of the source.
func (e *event) begins(head []byte, ended bool) bool {
	if ended && strings.TrimSpace(string(head)) == "[DONE]" {
		e.done = true
		return true
	}
	if e.data++; e.data > 1 {
		head = append([]byte("\n"), head...)
	}
	e.head, e.value = head, !ended
	return true
}
