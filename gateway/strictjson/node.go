package strictjson

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"unsafe"
)

// Node is an object of a document that is read once and not changed: no values are made
// before they are asked for.
type Node struct {
	doc *outlined
	// name is the offset of the member's name, from and to are those of the value; to is
	// that of the table among those of the document for an object that has one, else 0.
	name, from, to int32
	// self is the place of the node among those of the document, next that of the first
	// one behind it that is no part of it.
	self, next int32
	// escaped marks a string that is spelled with escapes.
	escaped bool
	// length is that of the name.
	length uint16
}

// outlined is a text of at most math.MaxInt32 bytes, and where its values are, in their order.
type outlined struct {
	text  string
	nodes []Node
	// tables are those of larger objects, the first is none.
	tables []table
	// long says that the length of a name is not that of its node.
	long bool
}

// table leads from the slot of a name to the node of a member, counted from that of the
// object, 0 for none. Of members with one slot it has the last.
type table [64]uint16

// tableEvery is about how many bytes of a list have an object that has a table.
const tableEvery = 512

// few is up to how many values an object is searched through.
const few = 8

// slot is the place of a name in tables. No two members of a pod have the same.
func slot(name string) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	return (n*11 + int(name[0])*3 + int(name[n-1])) % len(table{})
}

// DecodeNodes is DecodeLenient, but objects in the result are of type *Node, unless a
// name is spelled with escapes. The result is made of parts of data, which must not be
// changed any more.
func DecodeNodes(data []byte) (any, error) {
	doc := &outlined{
		text:  unsafe.String(unsafe.SliceData(data), len(data)), //nolint:gosec // the caller gives data up
		nodes: make([]Node, 0, likelyValues(data)), tables: make([]table, 1, 1+len(data)/tableEvery),
	}
	s := scanner{data: data, lim: ResponseLimits(), outline: doc}
	if len(data) <= math.MaxInt32 && s.document() && !s.escaped && !doc.long {
		return doc.value(0), nil
	}
	return DecodeLenient(data)
}

// likelyValues is how many values a text has, or more if strings hold what separates
// values.
func likelyValues(data []byte) int {
	const least = len(`"a":1,`) // of most members
	n := 1 + bytes.Count(data, []byte{','}) + bytes.Count(data, []byte{'{'}) + bytes.Count(data, []byte{'['})
	return min(n, 1+len(data)/least)
}

// begin notes a value, which has a name if it is a member.
func (d *outlined) begin(name span, from int) {
	length := name.to - name.from
	d.long = d.long || length > math.MaxUint16
	d.nodes = append(d.nodes, Node{
		doc: d, name: int32(name.from), length: uint16(length), from: int32(from), self: int32(len(d.nodes)),
	})
}

// end notes that the value of the node ends at the offset to. plain is false for a string
// that is spelled with escapes.
func (d *outlined) end(node, to int, plain bool) {
	n := &d.nodes[node]
	n.to, n.next, n.escaped = int32(to), int32(len(d.nodes)), !plain
	if d.text[n.from] == '{' {
		n.to = d.tabulate(n)
	}
}

// tabulate makes a table for an object of many values, and returns its place.
func (d *outlined) tabulate(n *Node) int32 {
	if size := n.next - n.self; size <= few || size > math.MaxUint16 {
		return 0
	}
	var t table
	for i := n.self + 1; i < n.next; i = d.nodes[i].next {
		t[slot(d.nodes[i].spelled())] = uint16(i - n.self)
	}
	d.tables = append(d.tables, t)
	return int32(len(d.tables) - 1)
}

// value returns the value of the node at i.
func (d *outlined) value(i int32) any {
	n := &d.nodes[i]
	switch d.text[n.from] {
	case '{':
		return n
	case '[':
		items := make([]any, 0, n.parts())
		for i := n.self + 1; i < n.next; i = d.nodes[i].next {
			items = append(items, d.value(i))
		}
		return items
	case '"':
		return n.string()
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	}
	return json.Number(d.text[n.from:n.to])
}

// parts is how many members or items a node has.
func (n *Node) parts() (count int) {
	for i := n.self + 1; i < n.next; i = n.doc.nodes[i].next {
		count++
	}
	return count
}

// string is the value of a node that is one.
func (n *Node) string() string {
	quoted := n.doc.text[n.from:n.to]
	if !n.escaped {
		return quoted[1 : len(quoted)-1]
	}
	s, _ := unquote([]byte(quoted)) // the scanner has checked it
	return s
}

// spelled returns the name of a node that is a member.
func (n *Node) spelled() string { return n.doc.text[n.name : int(n.name)+int(n.length)] }

// member returns the place of a member, 0 if there is none.
func (n *Node) member(name string) int32 {
	d := n.doc
	if n.to != 0 {
		at := int32(d.tables[n.to][slot(name)])
		if at == 0 {
			return 0
		}
		if d.nodes[n.self+at].spelled() == name {
			return n.self + at
		}
	}
	for i := n.self + 1; i < n.next; i = d.nodes[i].next {
		if m := &d.nodes[i]; int(m.length) == len(name) && m.spelled() == name {
			return i
		}
	}
	return 0
}

// Get returns the value of a member.
func (n *Node) Get(name string) (value any, ok bool) {
	if i := n.member(name); i != 0 {
		return n.doc.value(i), true
	}
	return nil, false
}

// Text returns a member that is a string, "" for any other.
func (n *Node) Text(name string) string {
	if m := n.at(name, '"'); m != nil {
		return m.string()
	}
	return ""
}

// at returns the node of a member whose value begins with c, nil for any other.
func (n *Node) at(name string, c byte) *Node {
	if i := n.member(name); i != 0 && n.doc.text[n.doc.nodes[i].from] == c {
		return &n.doc.nodes[i]
	}
	return nil
}

// AppendTexts appends the strings of a member that is an array, none for any other.
func (n *Node) AppendTexts(texts []string, name string) []string {
	list := n.at(name, '[')
	if list == nil {
		return texts
	}
	texts = slices.Grow(texts, list.parts())
	for i := list.self + 1; i < list.next; i = n.doc.nodes[i].next {
		if item := &n.doc.nodes[i]; n.doc.text[item.from] == '"' {
			texts = append(texts, item.string())
		}
	}
	return texts
}

// Number returns a member that is a number, "" for any other.
func (n *Node) Number(name string) json.Number {
	if i := n.member(name); i != 0 {
		m := &n.doc.nodes[i]
		if c := n.doc.text[m.from]; c == '-' || c-'0' <= 9 {
			return json.Number(n.doc.text[m.from:m.to])
		}
	}
	return ""
}

// AppendNames appends the names of the members.
func (n *Node) AppendNames(names []string) []string {
	names = slices.Grow(names, n.parts())
	for i := n.self + 1; i < n.next; i = n.doc.nodes[i].next {
		names = append(names, n.doc.nodes[i].spelled())
	}
	return names
}

// Map returns the object as DecodeLenient does.
func (n *Node) Map() map[string]any {
	d := n.doc
	m := make(map[string]any, n.parts())
	for i := n.self + 1; i < n.next; i = d.nodes[i].next {
		m[d.nodes[i].spelled()] = listed(d.value(i))
	}
	return m
}

// listed returns a value without Nodes in it.
func listed(v any) any {
	switch v := v.(type) {
	case *Node:
		return v.Map()
	case []any:
		for i, item := range v {
			v[i] = listed(item)
		}
	}
	return v
}
