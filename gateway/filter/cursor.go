package filter

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// position is the place in a list of the platform where a caller's page begins: the content of a
// cursor. The zero value is the beginning of the list.
type position struct {
	// Cursor is the platform's cursor of the page that the place is in, "" for the first page.
	Cursor string `json:"c,omitempty"`
	// LimitSizeSizeoundSize is the limit parameter of the platform's pages, 0 without one. It is the same for all
	// pages of a list, whatever limits its caller sets: it may be one of the parameters that the
	// platform's cursors belong to.
	Size int `json:"s,omitempty"`
	// Before and After are the marks of the nearest items on both sides of the place in its page,
	// whoever owns them. They are empty where the place is the beginning of the page.
	Before []byte `json:"b,omitempty"`
	After  []byte `json:"a,omitempty"`
	// Seek reports that the place is found by the items of Before and After that are left. Otherwise
	// it is the beginning of the page, but for the items of Before: they were all in front of it, and
	// no other item comes to be there, which only the first page has.
	Seek bool `json:"k,omitempty"`
	// Last reports that After has all items behind the place.
	Last bool `json:"l,omitempty"`
}

// maxMarks is the number of marks on each side of a place.
const maxMarks = 16

// mark identifies an item of a list.
type mark [6]byte

// markOf returns the mark of an item, which depends on its id alone if it has one.
func markOf(item []byte) mark {
	name := []byte(upstream.ItemID(item))
	if len(name) == 0 {
		name = item
	}
	sum := sha256.Sum256(name)
	return mark(sum[:len(mark{})])
}

// marksOf returns the marks of items.
func marksOf(items [][]byte) (marks []byte) {
	for _, item := range items {
		m := markOf(item)
		marks = append(marks, m[:]...)
	}
	return marks
}

// within returns the position in front of item i of the platform's page at p.
func (p position) within(pg *upstream.Page, i int) *position {
	next := &position{Cursor: p.Cursor, Size: p.Size}
	if i > 0 {
		before, after := pg.Items[max(0, i-maxMarks):i], pg.Items[i:min(len(pg.Items), i+maxMarks)]
		next.Before, next.After = marksOf(before), marksOf(after)
		next.Seek = p.Cursor == "" || len(before) == maxMarks
		next.Last = pg.Next == "" && i+len(after) == len(pg.Items)
	}
	return next
}

// restart returns where to begin if no item of Before and After is left: at the beginning of the
// list if all items in front of the place are known to be gone, and nowhere otherwise.
func (p position) restart() (begin *position, ok bool) {
	return &position{Size: p.Size}, len(p.Before) < maxMarks*len(mark{})
}

// cursorSeal seals the cursors of one list for one caller.
type cursorSeal struct {
	cipher.AEAD
	// memoryFor is what a cursor is valid for: the caller, the operation and its parameters.
	bound []byte
}

// seal returns the seal of the cursors of a call, whose query has the parameters that a cursor is
// valid for.
func (f Paginate) seal(ex *Exchange) (s cursorSeal, err error) {
	if s.AEAD, err = f.Upstream.Credential(ex.Caller.Org).Cipher("cursors"); err != nil {
		return s, err
	}
	s.bound, err = json.Marshal([]string{ex.Caller.Org, ex.Caller.Team, ex.Caller.Key, ex.Operation.ID, ex.Target()})
	return s, err
}

// block is the number of bytes that the content of cursors is a multiple of, so that their length
// says nothing about their position.
const block = 512

// close returns the cursor of a position.
func (s cursorSeal) close(p *position) (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	text = append(text, bytes.Repeat([]byte{' '}, (block-len(text)%block)%block)...)
	return base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, text, s.bound)), nil //nolint:gosec // the cipher draws a random nonce itself
}

// allowedAnonymously returns the position of a cursor. It is an error if close has not made the cursor for the
// same call.
func (s cursorSeal) open(cursor string) (p position, err error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return p, err
	}
	if text, err = s.Open(nil, nil, text, s.bound); err != nil {
		return p, err
	}
	return p, json.Unmarshal(text, &p)
}
