package legacy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// unfinished is the note of a create that was under way when its request was
// answered: its client repeats the request, and shall get that pod and not a
// second one.
type unfinished struct {
	// PodID is the pod, once there is one.
	PodID string `json:"podId,omitempty"`
	// Since and Body are what the pod is found by when no request is left to note its
	// id: when the first request came and the members of its create body that a
	// pod can be compared with.
	Since time.Time      `json:"since"`
	Body  map[string]any `json:"body"`
}

// How often a repeat looks whether the create is finished, and after what time
// the client is told to repeat.
const (
	resumePause = time.Second
	ResumeAfter = 5 * time.Second
)

// ErrUnfinished is the end of a request whose create takes longer than it may.
// The client is to repeat it after ResumeAfter.
var ErrUnfinished = errors.New("the pod is still being created")

// fingerprint is what identical requests of one caller have in common.
func (c *podCreate) fingerprint() string {
	sum := sha256.Sum256([]byte(c.want.Request))
	return hex.EncodeToString(sum[:16])
}

// outlive notes that a create is under way whose request is about to be
// answered. Identical requests may be sent on purpose, so each has a note of its
// own.
func (c *podCreate) outlive(ctx context.Context, candidate *translate.Candidate) func(context.Context, *translate.Response) {
	key := c.Key(translate.KindUnfinished, c.fingerprint()+"/"+rand.Text())
	body := maps.Clone(translate.Members(candidate.Request.Body))
	maps.DeleteFunc(body, func(name string, _ any) bool { // the others may hold secrets
		return !slices.Contains([]string{"name", "image", "cloud", "gpu", "cpu"}, name)
	})
	note := unfinished{Since: c.Started(), Body: body}
	translate.SaveNoteFor(ctx, c.Dialogue, key, note, translate.UnfinishedTTL)
	return func(ctx context.Context, made *translate.Response) {
		if made == nil {
			translate.DropNote(ctx, c.Dialogue, key)
			return
		}
		pod := v2.PodOf(made.Body)
		c.made(ctx, v2.PodOf(candidate.Request.Body), pod)
		note.PodID = pod.ID()
		translate.SaveNoteFor(ctx, c.Dialogue, key, note, translate.UnfinishedTTL)
	}
}

// resume answers the repeat of a create that was under way when its request was
// answered. It returns nothing when this request is no such repeat, or that
// create came to nothing.
func (c *podCreate) resume(ctx context.Context) (*MadePod, error) {
	if c.Deps().Late == nil {
		return nil, nil
	}
	notes, err := translate.LoadNotes[unfinished](ctx, c.Dialogue, translate.KindUnfinished)
	if err != nil || len(notes) == 0 {
		return nil, nil //nolint:nilerr // a memory that is away is told of by a warning and stops nothing
	}
	prefix := c.fingerprint() + "/"
	for _, id := range slices.Sorted(maps.Keys(notes)) {
		// One repeat for each: two of them are not given the same pod.
		if !strings.HasPrefix(id, prefix) || !translate.Claim(ctx, c.Dialogue, unfinishedClaim+id) {
			continue
		}
		made, err := c.await(ctx, id)
		if err != nil {
			translate.DropNote(ctx, c.Dialogue, c.Key(translate.KindClaim, unfinishedClaim+id)) // for the next repeat
			return nil, err
		}
		translate.DropNote(ctx, c.Dialogue, c.Key(translate.KindUnfinished, id))
		if made != nil {
			return made, nil
		}
	}
	return nil, nil
}

// unfinishedClaim begins the claims of notes; pods have theirs by their ids.
const unfinishedClaim = "unfinished/"

// await waits for the end of an unfinished create and answers with its pod, with
// nothing when there is none.
func (c *podCreate) await(ctx context.Context, id string) (*MadePod, error) {
	for {
		note, known, err := translate.LoadNote[unfinished](ctx, c.Dialogue, c.Key(translate.KindUnfinished, id))
		switch {
		case err != nil:
			return nil, ErrUnfinished
		case !known:
			return nil, nil
		case note.PodID != "":
			return c.finished(ctx, note.PodID)
		}
		if c.Pause(ctx, resumePause) == nil {
			continue
		}
		// Whoever waited for the platform may be gone, and would not tell.
		found, err := translate.FindPod(ctx, c.Dialogue, note.Body, note.Since)
		if err != nil || found == nil {
			return nil, ErrUnfinished
		}
		made := c.made(ctx, v2.PodOf(note.Body), v2.PodOf(found.Body))
		return &made, nil
	}
}

// finished answers with a pod that was completed in the meantime, with nothing
// when it was deleted again.
func (c *podCreate) finished(ctx context.Context, id string) (*MadePod, error) {
	pod, err := c.Pod(ctx, id)
	switch {
	case IsMissing(err):
		return nil, nil
	case err != nil:
		return nil, ErrUnfinished
	}
	note, _, _ := c.PodNote(ctx, id)
	return &MadePod{Pod: pod, Note: note}, nil
}
