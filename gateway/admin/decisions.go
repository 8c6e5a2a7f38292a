package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
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
	// Find explains an exchange by its decision id; false when it is not kept.
	Find(id string) (any, bool)
	// List returns the latest exchanges of an organisation, or of all for "",
	// at most limit.
	List(org string, limit int) any
	// Explain tells what would become of the request a JSON object describes. A
	// question it cannot read is a BadRequestError.
	Explain(ctx context.Context, question []byte) (any, error)
	// Audit holds what an organisation has against its policies. It returns ErrNoOrg for
	// one that is not configured.
	Audit(ctx context.Context, org string) (any, error)
}

func (d Deps) audit(w http.ResponseWriter, r *http.Request) {
	x, err := d.Decisions.Audit(r.Context(), r.URL.Query().Get("org"))
	switch {
	case errors.Is(err, ErrNoOrg):
		fail(w, err)
	case err != nil:
		write(w, http.StatusBadGateway, map[string]string{"error": err.Error()})
	default:
		write(w, http.StatusOK, x)
	}
}

func (d Deps) decisions(w http.ResponseWriter, r *http.Request) {
	limit := defaultListed
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxListed {
			write(w, http.StatusBadRequest, map[string]string{"error": "limit: want a number from 1 to " + strconv.Itoa(maxListed)})
			return
		}
		limit = n
	}
	write(w, http.StatusOK, map[string]any{"decisions": d.Decisions.List(r.URL.Query().Get("org"), limit)})
}

func (d Deps) decision(w http.ResponseWriter, r *http.Request) {
	x, ok := d.Decisions.Find(r.PathValue("id"))
	if !ok {
		write(w, http.StatusNotFound, map[string]string{"error": "this gateway keeps no decision of that id: it is too old, or another gateway's"})
		return
	}
	write(w, http.StatusOK, x)
}

func (d Deps) explain(w http.ResponseWriter, r *http.Request) {
	question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err != nil {
		write(w, http.StatusBadRequest, map[string]string{"error": "the question cannot be read"})
		return
	}
	x, err := d.Decisions.Explain(r.Context(), question)
	if bad, ok := errors.AsType[BadRequestError](err); ok {
		write(w, http.StatusBadRequest, map[string]string{"error": bad.Reason})
		return
	}
	if err != nil {
		write(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
		return
	}
	write(w, http.StatusOK, x)
}
