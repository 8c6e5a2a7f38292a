package translate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// unfinished is the note of a create whose end its request has not seen: the client
// repeats the request, and shall get that resource and not a second one.
type unfinished struct {
	// ID is the resource, once it is known.
	ID string `json:"id,omitempty"`
	// Open says that the platform's answer was lost: the resource can only be
	// found. Otherwise the call is under way.
	Open bool `json:"open,omitempty"`
	// Since is when the first request came, by the gateway's clock, Body what the
	// resource is recognised by, and Known which there were before.
	Since time.Time      `json:"since"`
	Body  map[string]any `json:"body"`
	Known []string       `json:"known,omitzero"`
}

// fingerprint names what has all of the parts.
func fingerprint(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// note writes down that what became of a create is not known yet. Identical
// requests may be sent on purpose, so each has a note of its own.
func (c *Creation) note(ctx context.Context, r *Request, open bool) Key {
	key := Key{Account: c.d.account, Kind: KindUnfinished, ID: c.wish + "/" + rand.Text()}
	body := maps.Clone(Members(r.Body))
	maps.DeleteFunc(body, func(name string, _ any) bool { return !slices.Contains(c.kind.same, name) })
	note := unfinished{Open: open, Since: c.d.started, Body: body}
	if c.known != nil {
		note.Known = slices.AppendSeq([]string{}, maps.Keys(c.known)) // none is not the same as not known
	}
	SaveNoteFor(ctx, c.d, key, note, UnfinishedTTL)
	return key
}

// lateTime bounds a call that outlives its request.
const lateTime = 5 * time.Minute

// call sends a create. When the request's time ends first, the call goes on without
// it: it cannot be taken back, and a client that is left waiting repeats what is
// being done already. Exactly one side takes the call's end: the request, or the
// note of the create.
func (c *Creation) call(ctx context.Context, r *Request) (*Response, error) {
	run := c.d.deps.Late
	if run == nil || ctx.Err() != nil {
		return c.d.Call(ctx, r)
	}
	type end struct {
		resp *Response
		err  error
	}
	alone := context.WithoutCancel(ctx)
	ended, outlived := make(chan end, 1), make(chan *Key, 1)
	run(func() {
		ctx, cancel := context.WithTimeout(alone, lateTime)
		defer cancel()
		resp, err := c.d.Call(ctx, r)
		ended <- end{resp, err}
		if key := <-outlived; key != nil {
			c.settleLate(alone, r, *key, resp, err)
		}
	})
	select {
	case e := <-ended:
		outlived <- nil
		return e.resp, e.err
	case <-ctx.Done():
	}
	key := c.note(alone, r, false)
	select {
	case e := <-ended: // in the very last moment
		outlived <- nil
		DropNote(alone, c.d, key)
		return e.resp, e.err
	default:
		outlived <- &key
		return nil, &UnfinishedError{c.kind.noun}
	}
}

// settleLate notes how a create ended that outlived its request.
func (c *Creation) settleLate(ctx context.Context, r *Request, key Key, resp *Response, err error) {
	note, ok, lost := LoadNote[unfinished](ctx, c.d, key)
	if lost != nil || !ok {
		return // a repeat has found the resource
	}
	switch {
	case unclear(resp, err):
		note.Open = true
	case !resp.OK() || !c.claim(ctx, Text(resp.Body, "id")):
		DropNote(ctx, c.d, key)
		return
	default:
		note.ID = Text(resp.Body, "id")
		if c.Late != nil {
			c.Late(ctx, r, resp)
		}
	}
	SaveNoteFor(ctx, c.d, key, note, UnfinishedTTL)
}

// Resume answers the repeat of a request whose create had no known end. It returns
// nil when this request is no such repeat, or that create came to nothing, and an
// UnfinishedError when the end is still not known.
func (c *Creation) Resume(ctx context.Context) (*Response, error) {
	notes, err := LoadNotes[unfinished](ctx, c.d, KindUnfinished)
	if err != nil {
		return nil, nil //nolint:nilerr // a memory that is away is told of by a warning and stops nothing
	}
	for _, id := range slices.Sorted(maps.Keys(notes)) {
		// One repeat for each: two of them are not given the same resource.
		if !strings.HasPrefix(id, c.wish+"/") || !c.claim(ctx, id) {
			continue
		}
		it, err := c.join(ctx, Key{c.d.account, KindUnfinished, id})
		if err != nil {
			DropNote(ctx, c.d, Key{c.d.account, KindClaim, c.kind.noun + "/" + id}) // for the next repeat
			return nil, err
		}
		DropNote(ctx, c.d, Key{c.d.account, KindUnfinished, id})
		if it != nil {
			return it, nil
		}
	}
	return nil, nil
}

// joinPause is how often a repeat asks whether the create is finished.
const joinPause = time.Second

// join waits for the end of an unfinished create and answers with its resource,
// with nil when there is none. One that is under way is looked for in the last
// moment only: whoever waits for its answer may be gone, and would not tell.
func (c *Creation) join(ctx context.Context, key Key) (*Response, error) {
	for due, pause, last := 0, 1, false; ; due-- {
		note, known, err := LoadNote[unfinished](ctx, c.d, key)
		switch {
		case err != nil:
			return nil, &UnfinishedError{c.kind.noun}
		case !known:
			return nil, nil
		case note.ID != "":
			return c.get(ctx, note.ID)
		}
		if last || note.Open && due <= 0 {
			due, pause = pause, 2*pause
			c.known = set(note.Known)
			if it, err := c.look(ctx, note.Body, note.Since); err == nil && it != nil {
				c.d.Adopt(&Request{Operation: c.kind.create, Body: note.Body}, Text(it.Body, "id"))
				return it, nil
			}
		}
		if last {
			return nil, &UnfinishedError{c.kind.noun}
		}
		last = c.wait(ctx, joinPause)
	}
}

// set returns the strings as a set, nil for nil.
func set(list []string) map[string]bool {
	if list == nil {
		return nil
	}
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}

// get answers with a resource that was completed in the meantime, with nil when it
// was deleted again.
func (c *Creation) get(ctx context.Context, id string) (*Response, error) {
	resp, err := c.d.Send(ctx, &Request{Operation: c.kind.get, Params: map[string]string{"id": id}}, Read)
	switch {
	case err == nil && resp.OK():
		return &Response{Status: http.StatusCreated, Header: resp.Header, Body: resp.Body}, nil
	case err == nil && resp.Status == http.StatusNotFound:
		return nil, nil
	}
	return nil, &UnfinishedError{c.kind.noun}
}
