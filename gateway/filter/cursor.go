package filter

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// position is the content of a cursor: the place in a list of the platform where a page for the caller begins. The zero value is the
// beginning of the list.
type position struct {
	// Cursor is the platform's cursor of the page that contains the position, "" for the first page.
	Cursor string `json:"c,omitempty"`
	// Size is the limit parameter sent to the platform, or 0. It stays the same for all pages of a list even if the caller changes the
	// limit, because the platform's cursors may be valid for one limit only.
	Size int `json:"s,omitempty"`
	// Before and After are the marks of the nearest items on both sides of the position within its page, regardless of their owners. They
	// are empty if the position is the beginning of the page.
	Before []byte `json:"b,omitempty"`
	After  []byte `json:"a,omitempty"`
	// Seek reports that the position must be found by the items in Before and After that still exist. Otherwise the page begins with the
	// first item that is not in Before; this is used for positions near the beginning of a page other than the first, where no new items
	// can appear.
	Seek bool `json:"k,omitempty"`
	// Last reports that After contains all items after the position.
	Last bool `json:"l,omitempty"`
}

// maxMarks is the number of marks stored on each side of a position.
const maxMarks = 16

// mark identifies an item of a list.
type mark [6]byte

// markOf returns the mark of an item, which depends only on the item's ID if it has one.
func markOf(item []byte) mark {
	name := []byte(upstream.ItemID(item))
	if len(name) == 0 {
		name = item
	}
	sum := sha256.Sum256(name)
	return mark(sum[:len(mark{})])
}

// marksOf returns the concatenated marks of items.
func marksOf(items [][]byte) (marks []byte) {
	for _, item := range items {
		m := markOf(item)
		marks = append(marks, m[:]...)
	}
	return marks
}

// within returns the position before item i of the page at p.
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

// restart returns the position to continue from when all items in Before and After have been deleted. If Before contained every item before
// the position, this is the beginning of the list. Otherwise there is no such position, and ok is false.
func (p position) restart() (begin *position, ok bool) {
	return &position{Size: p.Size}, len(p.Before) < maxMarks*len(mark{})
}

// cursorSeal encrypts and authenticates the cursors of one list for one caller.
type cursorSeal struct {
	cipher.AEAD
	// bound encodes the caller, operation and parameters; a cursor is valid only for these.
	bound []byte
}

// seal returns the seal for the cursors of a call. The query of ex must contain exactly the parameters that a cursor is valid for.
func (f Paginate) seal(ex *Exchange) (s cursorSeal, err error) {
	if s.AEAD, err = f.Upstream.Credential(ex.Caller.Org).Cipher("cursors"); err != nil {
		return s, err
	}
	s.bound, err = json.Marshal([]string{ex.Caller.Org, ex.Caller.Team, ex.Caller.Key, ex.Operation.ID, ex.Target()})
	return s, err
}

// block is a number of bytes. Cursors are padded to a multiple of it, so that the length of a cursor does not reveal the position.
const block = 512

// close returns the cursor for a position.
func (s cursorSeal) close(p *position) (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	text = append(text, bytes.Repeat([]byte{' '}, (block-len(text)%block)%block)...)
	return base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, text, s.bound)), nil //nolint:gosec // the cipher generates a random nonce
}

// open returns the position in a cursor. It returns an error if the cursor was not created for the same caller, operation and parameters.
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
