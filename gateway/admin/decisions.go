package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxListed and defaultListed bound one list of decisions, maxQuestion a
// question.
const (
	maxListed     = 1000
	defaultListed = 50
	maxQuestion   = 1 << 20
)

// Decisions tells what was decided and what would be. What it returns is
// written as JSON.
type Decisions interface {
	// Find explains an exchange of an organisation, or of any for "", by its decision id,
	// nil if it is not kept.
	Find(ctx context.Context, org, id string) (any, error)
	// List returns the latest exchanges that are selected. With an error, they are those
	// of this gateway alone.
	List(ctx context.Context, q DecisionQuery) (any, error)
	// Explain reports what would become of the request a JSON object describes. A
	// question that cannot be read, or is about another organisation than org, unless
	// that is "", is a BadRequestError.
	Explain(ctx context.Context, org string, question []byte) (any, error)
	// Log writes the decision log of this gateway, one JSON object per line: the events of
	// an organisation that are no older than since. It returns ErrNoOrg or a RefusedError
	// before it writes anything.
	Log(ctx context.Context, w io.Writer, org string, since time.Time) error
	// Audit holds what an organisation has against its policies. It returns ErrNoOrg for
	// one that is not configured.
	Audit(ctx context.Context, org string) (any, error)
}

// DecisionQuery selects exchanges. A zero member selects all.
type DecisionQuery struct {
	Org, Team, Key string
	// Refused selects what was refused.
	Refused bool
	// Own selects what the gateway did by itself.
	Own bool
	// Since selects what began no earlier.
	Since time.Time
	// Limit bounds how many there are, the newest.
	Limit int
}

func (d Deps) audit(r *http.Request) (any, error) {
	x, err := d.Decisions.Audit(r.Context(), r.URL.Query().Get("org"))
	if err != nil && !errors.Is(err, ErrNoOrg) {
		err = RefusedError{http.StatusBadGateway, err.Error()}
	}
	return x, err
}

func (d Deps) decisions(r *http.Request) (any, error) {
	given := r.URL.Query()
	q := DecisionQuery{Org: given.Get("org"), Team: given.Get("team"), Key: given.Get("key"), Limit: defaultListed}
	var err error
	if text := given.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > maxListed {
			return nil, BadRequestError{Reason: "limit: want a number from 1 to " + strconv.Itoa(maxListed)}
		}
	}
	if text := given.Get("refused"); text != "" {
		if q.Refused, err = strconv.ParseBool(text); err != nil {
			return nil, BadRequestError{Reason: "refused: want true or false"}
		}
	}
	if text := given.Get("own"); text != "" {
		if q.Own, err = strconv.ParseBool(text); err != nil {
			return nil, BadRequestError{Reason: "own: want true or false"}
		}
	}
	if text := given.Get("since"); text != "" {
		if q.Since, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, BadRequestError{Reason: "since: want a time such as 2026-11-22T15:04:05Z"}
		}
	}
	list, err := d.Decisions.List(r.Context(), q)
	answer := map[string]any{"decisions": list}
	if err != nil {
		answer["incomplete"] = "the shared store does not answer: these are this gateway's"
	}
	return answer, nil
}

func (d Deps) decisionLog(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query()
	var since time.Time
	if text := given.Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			fail(w, BadRequestError{Reason: "since: want a time such as 2026-11-22T15:04:05Z"})
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	err := d.Decisions.Log(r.Context(), w, given.Get("org"), since)
	if _, refused := errors.AsType[RefusedError](err); refused || errors.Is(err, ErrNoOrg) {
		fail(w, err)
	} else if err != nil {
		panic(http.ErrAbortHandler) // what was written must not look whole
	}
}

func (d Deps) decision(r *http.Request) (any, error) {
	x, err := d.Decisions.Find(r.Context(), asking(r).Org, r.PathValue("id"))
	if err == nil && x == nil {
		err = RefusedError{http.StatusNotFound, "no decision of that id is kept: it is too old, or it only read and passed at another gateway"}
	}
	return x, err
}

func (d Deps) explain(r *http.Request) (any, error) {
	question, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxQuestion))
	if err != nil {
		return nil, BadRequestError{"the question cannot be read"}
	}
	x, err := d.Decisions.Explain(r.Context(), asking(r).Org, question)
	if _, bad := errors.AsType[BadRequestError](err); err != nil && !bad {
		err = RefusedError{http.StatusInternalServerError, err.Error()}
	}
	return x, err
}
