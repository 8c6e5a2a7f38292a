package strictyaml

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

const (
	// MaxListSize is the size of the largest file that [Positions.Extend] reads, in
	// bytes.
	MaxListSize = 16 << 20
	// chunk is how many entries of a list are parsed together: the tree of a long
	// list takes many times the memory of its values.
	chunk = 256
)

// extension is a list that is continued in another file.
type extension struct {
	path  string
	first int // index of its first entry
	file  string
	lines []int // of its entries
}

// Extend reads a file that holds nothing but a list in block style, with its dashes
// at the beginning of lines, and appends its entries to the list that into points
// to, the value at path. Faults are reported as by [DecodePartial], with the paths that the
// entries have there, and p knows where they are written. A list that would have more
// than most entries is a fault, and is not read further.
func (p *Positions) Extend(name string, data []byte, path string, into any, most int) error {
	list := reflect.ValueOf(into).Elem()
	pl := planOf(list.Type())
	src := &source{name: name}
	if !src.readable(data, MaxListSize) {
		return src.faults
	}
	e := extension{path: path, first: list.Len(), file: name}
	for line, text := range chunks(data) {
		part := &source{name: name, at: map[string]place{}}
		entries := reflect.New(list.Type()).Elem()
		if doc := part.parse(text); doc != nil {
			(&decoder{src: part}).value(doc, pl, entries, "")
		}
		for _, f := range part.faults {
			if f.Line > 0 {
				f.Line += line
			}
			f.Path = shifted(f.Path, path, list.Len())
			src.faults = append(src.faults, f)
		}
		for i := range entries.Len() {
			e.lines = append(e.lines, line+part.at[fault.Index("", i)].line)
		}
		list.Set(reflect.AppendSlice(list, entries))
		if list.Len() > most {
			src.fault(place{line + 1, 1}, path, "", "has more than %d entries", most)
			break
		}
	}
	p.extensions = append(p.extensions, e)
	if len(src.faults) > 0 {
		return src.faults
	}
	return nil
}

// chunks cuts a list into lists of at most chunk entries, each with the number of
// lines before it. A value that is not a list is one chunk.
func chunks(data []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		begin, first, line, entries := 0, 0, 0, 0
		for at := 0; at < len(data); line++ {
			if data[at] == '-' {
				if entries == chunk {
					if !yield(first, data[begin:at]) {
						return
					}
					begin, first, entries = at, line, 0
				}
				entries++
			}
			end := bytes.IndexByte(data[at:], '\n')
			if end < 0 {
				break
			}
			at += end + 1
		}
		yield(first, data[begin:])
	}
}

// shifted is the path of a fault in a list whose entries come after others.
func shifted(path, list string, by int) string {
	index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
	i, err := strconv.Atoi(index)
	if !ok || err != nil {
		return list
	}
	return fmt.Sprintf("%s[%d]%s", list, i+by, rest)
}

// extended returns where the entry at path is written, if it is in another file.
func (p *Positions) extended(path string) (file string, line int, ok bool) {
	for _, e := range p.extensions {
		rest, below := strings.CutPrefix(path, e.path+"[")
		i, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
		if i -= e.first; below && err == nil && i >= 0 && i < len(e.lines) {
			return e.file, e.lines[i], true
		}
	}
	return "", 0, false
}
