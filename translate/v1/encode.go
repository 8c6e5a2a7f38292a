package v1

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/tollgate-dev/tollgate/translate"
)

// objectWriter writes JSON objects member by member. The caller must write members sorted by name, as
// translate.AppendJSON does for maps.
type objectWriter struct {
	buf []byte
	err error // the first error
	// room is a buffer for strings that are read from a Record and written immediately; scratch is a buffer for a
	// composed string.
	room    []string
	scratch []byte
}

// begin writes the beginning of the object, and end its end.
func (w *objectWriter) begin() { w.buf = append(w.buf, '{') }

func (w *objectWriter) end() { w.buf = append(w.buf, '}') }

// name begins a member. Member names are constants and need no escaping.
func (w *objectWriter) name(name string) {
	if w.buf[len(w.buf)-1] == '{' {
		w.buf = append(w.buf, '"')
	} else {
		w.buf = append(w.buf, ',', '"')
	}
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

// object begins a member that is an object; end ends it.
func (w *objectWriter) object(name string) {
	w.name(name)
	w.begin()
}

func (w *objectWriter) text(name, s string) {
	w.name(name)
	w.setBuffer(translate.AppendText(w.buf, s))
}

// textFrom writes a string that f composes.
func (w *objectWriter) textFrom(name string, f func(buf []byte) []byte) {
	w.scratch = f(w.scratch[:0])
	w.name(name)
	w.setBuffer(translate.AppendText(w.buf, w.scratch))
}

// texts writes a list. It writes an empty list in place of null.
func (w *objectWriter) texts(name string, list []string) {
	w.name(name)
	w.buf = append(w.buf, '[')
	for i, s := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.setBuffer(translate.AppendText(w.buf, s))
	}
	w.buf = append(w.buf, ']')
}

func (w *objectWriter) whole(name string, n int64) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

func (w *objectWriter) number(name string, n json.Number) {
	w.name(name)
	w.setBuffer(translate.AppendNumber(w.buf, n))
}

func (w *objectWriter) flag(name string, b bool) {
	w.name(name)
	w.buf = strconv.AppendBool(w.buf, b)
}

func (w *objectWriter) value(name string, v any) {
	w.name(name)
	w.setBuffer(translate.AppendJSON(w.buf, v))
}

// members writes the object v without its hidden members, or an empty object if v is not an object.
func (w *objectWriter) members(name string, v any, hidden []string) {
	w.name(name)
	w.setBuffer(translate.AppendMembers(w.buf, v, hidden, &w.room))
}

func (w *objectWriter) setBuffer(buf []byte, err error) {
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return
	}
	w.buf = buf
}
