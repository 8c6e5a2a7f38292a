package translate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"
)

// resource says how the platform shows what a create made.
type resource struct {
	// noun names the resource; create makes it, get and list show it, and member
	// is the array of the list.
	noun, create, get, list, member string
	// same lists the members of the create body that the resource shows
	// unchanged, none of them secret.
	same []string
	// dated reports whether the resource says when it was created.
	dated bool
	// repeats is how often a create that failed is tried again.
	repeats int
}

var creates = []resource{
	{"pod", "createPod", "getPod", "listPods", "pods", []string{"name", "image", "cloud", "gpu", "cpu"}, true, len(backoff)},
	{"endpoint", "createEndpoint", "getEndpoint", "listEndpoints", "endpoints", []string{"name", "image", "type"}, true, 1},
	{"cluster", "createCluster", "getCluster", "listClusters", "clusters", []string{"name", "type"}, true, 1},
	{"template", "createTemplate", "getTemplate", "listTemplates", "templates", []string{"name", "image"}, false, 1},
	{"network volume", "createNetworkVolume", "getNetworkVolume", "listNetworkVolumes", "networkVolumes", []string{"name", "dataCenter", "size"}, false, 1},
	{"container registry auth", "createRegistry", "getRegistry", "listRegistries", "registries", []string{"name"}, false, 1},
}

// UnfinishedError ends a request when what became of its create is not known. A
// repeat of the same request after ResumeAfter answers with the resource.
type UnfinishedError struct {
	// Noun names the resource.
	Noun string
}

// ResumeAfter is when a repeat has a chance.
const ResumeAfter = 5 * time.Second

// Error implements error; callers see it.
func (e *UnfinishedError) Error() string {
	return "The platform has not said what became of the " + e.Noun + ": it may have been created. Send the same request again to get it."
}

// Creation is a wish for one new resource, fulfilled by at most one create call
// that the platform carries out. After an end that does not say whether a call was
// carried out there is no other: the resource is looked for while the request's
// time lasts, and then by repeats of the request.
//
// What may be taken for the resource looks like it, was not there before the
// request, and no other request was answered with it.
type Creation struct {
	d    *Dialogue
	kind resource
	// wish is what repeats of a request have in common.
	wish string
	// known are the ids there were before; nil when they are not known.
	known map[string]bool
	// Late is told of a success that came when the request had been answered; nil
	// ignores it.
	Late func(ctx context.Context, r *Request, made *Response)
}

// NewCreation begins a create by the v2 operation. wish is the same for requests of
// one caller that ask for the same.
func NewCreation(d *Dialogue, operation, wish string) *Creation {
	i := slices.IndexFunc(creates, func(r resource) bool { return r.create == operation })
	return &Creation{d: d, kind: creates[i], wish: fingerprint(operation, d.caller, wish)}
}

// Create carries out one create call for which there are no other candidates. The
// error is an UnfinishedError when it is not known what became of it.
func Create(ctx context.Context, d *Dialogue, r *Request) (*Response, error) {
	wish, err := json.Marshal(r.Body)
	if err != nil {
		return nil, err
	}
	c := NewCreation(d, r.Operation, string(wish))
	if found, err := c.Resume(ctx); found != nil || err != nil {
		return found, err
	}
	resp, _, err := c.settle(ctx, r)
	return resp, err
}

// settle sends a create until its end is known. found reports whether the success
// was found by looking.
func (c *Creation) settle(ctx context.Context, r *Request) (resp *Response, found bool, err error) {
	c.remember(ctx)
	for faults := 0; ; faults++ {
		resp, err = c.call(ctx, r)
		for err == nil && resp.Status == http.StatusTooManyRequests && c.d.Pause(ctx, resp.RetryAfter()) == nil {
			resp, err = c.call(ctx, r)
		}
		switch {
		case unclear(resp, err):
			return c.await(ctx, r, c.note(ctx, r, true))
		case err != nil:
			return nil, false, err
		case resp.OK():
			c.claim(ctx, Text(resp.Body, "id"))
			return resp, false, nil
		case resp.Status < http.StatusInternalServerError:
			return resp, false, nil
		}
		again := faults < c.kind.repeats && ctx.Err() == nil && c.d.Pause(ctx, backoff[faults]) == nil
		if !resp.Unsent {
			it, err := c.look(ctx, r.Body, c.d.started)
			if it != nil {
				c.d.Adopt(r, Text(it.Body, "id"))
				return it, true, nil
			}
			again = again && err == nil
		}
		if !again {
			return resp, false, nil
		}
	}
}

// unclear reports an end after which the resource may or may not exist: an answer
// that was lost, or a success without an id.
func unclear(resp *Response, err error) bool {
	return errors.Is(err, ErrAmbiguous) || resp.OK() && Text(resp.Body, "id") == ""
}

// lookMargin is the time kept for the last look.
const lookMargin = 500 * time.Millisecond

// wait pauses before a look, less when the time does not last; last reports that
// no other look will fit.
func (c *Creation) wait(ctx context.Context, pause time.Duration) (last bool) {
	left := c.d.Remaining() - lookMargin
	last = left <= pause
	return c.d.Pause(ctx, max(min(pause, left), 0)) != nil || last
}

// await looks for what an open create made, at growing distances.
func (c *Creation) await(ctx context.Context, r *Request, key Key) (*Response, bool, error) {
	for pause, last := lookMargin, false; !last; pause *= 2 {
		last = c.wait(ctx, pause)
		if it, err := c.look(ctx, r.Body, c.d.started); err == nil && it != nil {
			DropNote(ctx, c.d, key)
			c.d.Adopt(r, Text(it.Body, "id"))
			return it, true, nil
		}
	}
	return nil, false, &UnfinishedError{c.kind.noun}
}

// remember reads which resources there are, of a kind that does not say when one
// was created. It is not worth a repeat.
func (c *Creation) remember(ctx context.Context) {
	if c.kind.dated || c.known != nil {
		return
	}
	resp, err := c.d.Send(ctx, &Request{Operation: c.kind.list}, Once)
	if err != nil || !resp.OK() {
		return
	}
	c.known = make(map[string]bool)
	for _, it := range Items(resp.Body, c.kind.member) {
		c.known[Text(it, "id")] = true
	}
}

// look looks once for what a create made and claims it; nil means that there is
// none.
func (c *Creation) look(ctx context.Context, body any, since time.Time) (*Response, error) {
	resp, err := c.d.Send(ctx, &Request{Operation: c.kind.list}, Once)
	switch {
	case err != nil:
		return nil, err
	case !resp.OK():
		return nil, errNoAnswer
	case !c.kind.dated && c.known == nil:
		return nil, nil // new ones cannot be told from old ones
	}
	since = c.d.platformTime(since)
	for _, it := range Items(resp.Body, c.kind.member) {
		if c.isNew(it, since) && c.resembles(it, body) && c.claim(ctx, Text(it, "id")) {
			return &Response{Status: http.StatusCreated, Header: resp.Header, Body: it}, nil
		}
	}
	return nil, nil
}

// isNew reports whether a resource was not there before the request.
func (c *Creation) isNew(it any, since time.Time) bool {
	id := Text(it, "id")
	if id == "" || c.known[id] {
		return false
	}
	if !c.kind.dated {
		return true
	}
	created, err := time.Parse(time.RFC3339Nano, Text(it, "createdAt"))
	return err == nil && !created.Before(since)
}

// resembles reports whether a resource shows what the body of its create asked for.
func (c *Creation) resembles(it, body any) bool {
	for _, name := range c.kind.same {
		if !shows(At(it, name), At(body, name)) {
			return false
		}
	}
	return true
}

// shows reports whether got has everything that is wanted: of objects, the members
// named "id" and "count".
func shows(got, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case string:
		return want == "" || got == want
	case map[string]any:
		return shows(At(got, "id"), want["id"]) && shows(At(got, "count"), want["count"])
	}
	n, ok := Number(want)
	m, same := Number(got)
	return ok && same && n == m
}

// claim marks a resource as answered and reports whether no request had it before.
// A failing store counts as none: a second resource would cost more than a shared
// answer.
func (c *Creation) claim(ctx context.Context, id string) bool {
	key := Key{Account: c.d.account, Kind: KindClaim, ID: c.kind.noun + "/" + id}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), memoryTime)
	defer cancel()
	added, err := c.d.deps.Store.Add(ctx, key, json.RawMessage("true"), ClaimTTL)
	if err != nil {
		c.d.deps.Logger.WarnContext(ctx, "translation memory not written", "kind", KindClaim, "error", err)
		return true
	}
	return added
}
