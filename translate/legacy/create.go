package legacy

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

// Creation makes a resource for which there are no candidates.
type Creation struct {
	About
	Call *translate.Request
	// List and Member name the collection that the result would be in; Claims
	// keeps its claims apart from those of other kinds.
	List, Member, Claims string
}

// clockSlack is how far the platform's clock may be behind ours when the age of a
// resource is compared with the start of the request.
const clockSlack = 2 * time.Second

// Create makes the resource. When the answer is lost it looks for the result
// first, and sends the call a second and last time when there certainly is none.
func (s *Session) Create(ctx context.Context, c Creation) (map[string]any, error) {
	for try := 0; ; try++ {
		resp, err := s.Send(ctx, c.Call, translate.Once)
		s.Forget()
		if !unanswered(resp, err) && !resp.OK() {
			return nil, &RefusedError{c.About, resp, nil}
		}
		if err == nil && resp.OK() && translate.Text(resp.Body, "id") != "" {
			s.claim(ctx, c, resp.Body)
			return translate.Members(resp.Body), nil
		}
		found, certain := s.find(ctx, c)
		if found != nil {
			return found, nil
		}
		if try == 1 || !certain || err == nil && resp.OK() || s.Pause(ctx, pause) != nil {
			return nil, &RefusedError{c.About, resp, err}
		}
	}
}

func (s *Session) claim(ctx context.Context, c Creation, resource any) bool {
	return translate.Claim(ctx, s.Dialogue, c.Claims+"/"+translate.Text(resource, "id"))
}

// find looks for the result of a create among the listed resources that no
// request was answered with. certain means that none of them can be it.
func (s *Session) find(ctx context.Context, c Creation) (found map[string]any, certain bool) {
	list, err := s.List(ctx, c.About, c.List, c.Member, nil)
	if err != nil {
		return nil, false
	}
	certain = true
	for _, resource := range list {
		if translate.Text(resource, "name") != translate.Text(c.Call.Body, "name") || s.isOlder(resource) {
			continue
		}
		certain = false
		if agrees(resource, c.Call.Body) && s.claim(ctx, c, resource) {
			return translate.Members(resource), true
		}
	}
	return nil, certain
}

// agrees reports whether a resource shows nothing else than the body asked for.
func agrees(resource, body any) bool {
	for _, name := range [...]string{"image", "dataCenter", "type"} {
		got, want := translate.Text(resource, name), translate.Text(body, name)
		if got != "" && want != "" && got != want {
			return false
		}
	}
	return translate.At(resource, "size") == nil || translate.Whole(resource, "size") == translate.Whole(body, "size")
}

// isOlder reports whether a resource was made before this request.
func (s *Session) isOlder(resource any) bool {
	created, err := time.Parse(time.RFC3339Nano, translate.Text(resource, "createdAt"))
	return err == nil && created.Before(s.Started().Add(-clockSlack))
}
