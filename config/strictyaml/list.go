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
	// MaxListSize is the size in bytes of the largest file that [Positions.Extend] reads.
	MaxListSize = 16 << 20
	// chunk is the number of list entries that are parsed together. Long lists are parsed in chunks, because the tree of a list needs many
	// times the memory of its values.
	chunk = 256
)

// extension is a list that continues in another file.
type extension struct {
	path  string
	first int // index of the first entry in that file
	file  string
	lines []int // line of each entry
}

// Extend decodes a file that contains only a list, and appends its entries to the list that into points to. path is the path of the list in
// the configuration. The file must be in block style, with the dashes in the first column. Like [DecodePartial], Extend sets all entries
// that can be decoded; faults contain the paths of entries in the extended list. p records the positions of the entries. If the list gets
// more than limit entries, Extend reports a fault and stops reading.
func (p *Positions) Extend(name string, data []byte, path string, into any, limit int) error {
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
		if list.Len() > limit {
			src.fault(place{line + 1, 1}, path, "", "has more than %d entries", limit)
			break
		}
	}
	p.extensions = append(p.extensions, e)
	if len(src.faults) > 0 {
		return src.faults
	}
	return nil
}

// chunks splits the text of a list into lists of at most chunk entries. It yields each of them with the number of lines that precede it. A
// text that is not a list is a single chunk.
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

// shifted converts the path of a fault in a chunk to a path in the whole list, which is at the path list and has by entries before the
// chunk.
func shifted(path, list string, by int) string {
	index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
	i, err := strconv.Atoi(index)
	if !ok || err != nil {
		return list
	}
	return fmt.Sprintf("%s[%d]%s", list, i+by, rest)
}

// extended returns the position of a list entry that [Positions.Extend] has read from another file. ok is false for all other paths.
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
