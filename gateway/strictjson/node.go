package strictjson

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"unsafe"
)

// Node is an object in a document that [DecodeNodes] has decoded. It is read-only, and decodes its members when they are read.
type Node struct {
	doc *outlined
	// name is the offset of the member's name. from and to are the start and the end of the value. For an object, to is the index of the
	// object's table in the document, or 0 if the object has no table.
	name, from, to int32
	// self is the index of the node in the document. next is the index of the first following node that is not part of this node.
	self, next int32
	// escaped is true if the value is a string with escapes.
	escaped bool
	// length is the length of the name.
	length uint16
}

// outlined is a text of at most math.MaxInt32 bytes with the positions of its values, in order.
type outlined struct {
	text  string
	nodes []Node
	// tables holds the tables of larger objects; the first entry is unused.
	tables []table
	// long is true if a name is too long for Node.length.
	long bool
}

// table maps the slot of a name to the index of a member relative to the object's node, or 0. If several members have the
// same slot, it holds the last one.
type table [64]uint16

// tableEvery is the approximate number of bytes in a list for each object that has a table.
const tableEvery = 512

// few is the maximum number of values of an object that is searched linearly.
const few = 8

// slot returns the position of a name in a table. The member names of a pod all have distinct slots.
func slot(name string) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	return (n*11 + int(name[0])*3 + int(name[n-1])) % len(table{})
}

// DecodeNodes is like [DecodeLenient], but represents objects as [*Node]. If a member name contains escapes, the result contains maps
// instead. The result shares memory with data, which must not be modified afterwards.
func DecodeNodes(data []byte) (any, error) {
	doc := &outlined{
		text:  unsafe.String(unsafe.SliceData(data), len(data)), //nolint:gosec // the caller no longer modifies data
		nodes: make([]Node, 0, likelyValues(data)), tables: make([]table, 1, 1+len(data)/tableEvery),
	}
	s := scanner{data: data, lim: ResponseLimits(), outline: doc}
	if len(data) <= math.MaxInt32 && s.document() && !s.escaped && !doc.long {
		return doc.value(0), nil
	}
	return DecodeLenient(data)
}

// likelyValues estimates the number of values in a text. The estimate is too high if strings contain separators.
func likelyValues(data []byte) int {
	const least = len(`"a":1,`) // shorter than most members
	n := 1 + bytes.Count(data, []byte{','}) + bytes.Count(data, []byte{'{'}) + bytes.Count(data, []byte{'['})
	return min(n, 1+len(data)/least)
}

// begin records the start of a value, and its name if it is a member.
func (d *outlined) begin(name span, from int) {
	length := name.to - name.from
	d.long = d.long || length > math.MaxUint16
	d.nodes = append(d.nodes, Node{
		doc: d, name: int32(name.from), length: uint16(length), from: int32(from), self: int32(len(d.nodes)),
	})
}

// end records the end of a node's value. plain is false for a string with escapes.
func (d *outlined) end(node, to int, plain bool) {
	n := &d.nodes[node]
	n.to, n.next, n.escaped = int32(to), int32(len(d.nodes)), !plain
	if d.text[n.from] == '{' {
		n.to = d.tabulate(n)
	}
}

// tabulate creates a table for an object with many values and returns the table's index, or 0.
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

// parts returns the number of members or items of the node.
func (n *Node) parts() (count int) {
	for i := n.self + 1; i < n.next; i = n.doc.nodes[i].next {
		count++
	}
	return count
}

// string returns the value of a string node.
func (n *Node) string() string {
	quoted := n.doc.text[n.from:n.to]
	if !n.escaped {
		return quoted[1 : len(quoted)-1]
	}
	s, _ := unquote([]byte(quoted)) // validated by the scanner
	return s
}

// spelled returns the name of a member node.
func (n *Node) spelled() string { return n.doc.text[n.name : int(n.name)+int(n.length)] }

// member returns the index of a member, or 0 if it does not exist.
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

// Get returns the value of the member with the given name. ok is false if no such member exists.
func (n *Node) Get(name string) (value any, ok bool) {
	if i := n.member(name); i != 0 {
		return n.doc.value(i), true
	}
	return nil, false
}

// Text returns the value of the string member with the given name. It returns "" if the member is missing or not a string.
func (n *Node) Text(name string) string {
	if m := n.at(name, '"'); m != nil {
		return m.string()
	}
	return ""
}

// at returns the node of the member with the given name if its value begins with the byte c. Otherwise it returns nil.
func (n *Node) at(name string, c byte) *Node {
	if i := n.member(name); i != 0 && n.doc.text[n.doc.nodes[i].from] == c {
		return &n.doc.nodes[i]
	}
	return nil
}

// AppendTexts appends the strings in the array member with the given name to texts, and returns the extended slice. If the member is
// missing or not an array, AppendTexts returns texts unchanged.
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

// Number returns the value of the number member with the given name. It returns "" if the member is missing or not a number.
func (n *Node) Number(name string) json.Number {
	if i := n.member(name); i != 0 {
		m := &n.doc.nodes[i]
		if c := n.doc.text[m.from]; c == '-' || c-'0' <= 9 {
			return json.Number(n.doc.text[m.from:m.to])
		}
	}
	return ""
}

// AppendNames appends the names of the object's members to names, and returns the extended slice.
func (n *Node) AppendNames(names []string) []string {
	names = slices.Grow(names, n.parts())
	for i := n.self + 1; i < n.next; i = n.doc.nodes[i].next {
		names = append(names, n.doc.nodes[i].spelled())
	}
	return names
}

// Map returns the object as a map, in the form that [DecodeLenient] returns.
func (n *Node) Map() map[string]any {
	d := n.doc
	m := make(map[string]any, n.parts())
	for i := n.self + 1; i < n.next; i = d.nodes[i].next {
		m[d.nodes[i].spelled()] = listed(d.value(i))
	}
	return m
}

// listed replaces the Nodes in a value with maps.
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
