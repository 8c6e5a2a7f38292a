package operator

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// Number and age of the revisions to keep.
const (
	maxRevisions = 50
	keptFor      = 365 * 24 * time.Hour
)

// list is the name of the single list of revisions.
const list = "all"

// Revisions stores configurations and compares them. All fields except File are required.
type Revisions struct {
	Journal *store.CappedLog
	// Gateway and Version identify this gateway.
	Gateway, Version string
	*view.Current
	// File reads the configuration file again, without its secrets. It is nil for a gateway without a file.
	File func() (*settings.Config, error)
}

// NewJournal returns the log of the configurations that were in force, for [Revisions]. It does not dial.
func NewJournal(client store.Client, prefix settings.Prefix) *store.CappedLog {
	return &store.CappedLog{Client: client, Prefix: prefix.Decisions() + "revisions:", MaxLines: maxRevisions, Retention: keptFor}
}

// List returns the stored configurations, newest first.
func (r *Revisions) List(ctx context.Context) ([]Revision, error) {
	entries, err := r.Journal.List(ctx, list)
	out := []Revision{}
	for _, text := range entries {
		var one Revision
		if json.Unmarshal([]byte(text), &one) != nil || len(out) > 0 && out[len(out)-1].Revision == one.Revision {
			continue // written by another version, or stored by two gateways at once
		}
		out = append(out, one)
	}
	return out, err
}

// Save stores the configuration in force unless it is already the latest stored revision.
func (r *Revisions) Save(ctx context.Context) error {
	cfg := r.Config()
	known, err := r.List(ctx)
	if err != nil {
		return err
	}
	if len(known) > 0 && known[0].Revision == cfg.Revision {
		return nil
	}
	text, err := cfg.Show("")
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	one, err := json.Marshal(Revision{Revision: cfg.Revision, Loaded: r.Load().Loaded.UTC(), Gateway: r.Gateway, Version: r.Version})
	if err != nil {
		return err
	}
	if err := r.Journal.Put(ctx, list, cfg.Revision, packed.Bytes()); err != nil {
		return err
	}
	if len(known) >= maxRevisions { // the list drops its oldest entry
		last := known[len(known)-1].Revision
		if last != cfg.Revision && !slices.ContainsFunc(known[:len(known)-1], func(k Revision) bool { return k.Revision == last }) {
			if err := r.Journal.Drop(ctx, list, last); err != nil {
				return err
			}
		}
	}
	return r.Journal.Add(ctx, list, one)
}

// Diff compares the configuration in force, or an organisation's part of it, with another configuration. revision identifies a stored
// configuration; it is AgainstFile for the configuration file, and "" for the previous revision. Diff returns adminapi.ErrUnknownOrg for an
// unknown organisation.
func (r *Revisions) Diff(ctx context.Context, org, revision string) (*ConfigDiff, error) {
	cfg := r.Config()
	now, err := shown(cfg, org)
	if err != nil {
		return nil, err
	}
	if len(now) == 0 {
		return nil, adminapi.ErrUnknownOrg
	}
	out := &ConfigDiff{To: cfg.Revision}
	var other []byte
	if revision == AgainstFile {
		other, err = r.file(org, out)
	} else {
		other, err = r.revision(ctx, org, revision, out)
	}
	if err != nil || other == nil {
		return out, err
	}
	if revision == AgainstFile { // the file may take effect next
		out.Diff = string(diff.Diff(out.To, now, out.From, other))
		out.From, out.To = out.To, out.From
		return out, nil
	}
	out.Diff = string(diff.Diff(out.From, other, out.To, now))
	return out, nil
}

// file returns the text of the configuration file. If it cannot be read, it returns nil and sets out.Fault.
func (r *Revisions) file(org string, out *ConfigDiff) ([]byte, error) {
	out.From = AgainstFile
	if r.File == nil {
		return nil, adminapi.RefusedError{Status: http.StatusConflict, Reason: "gateway was started without a configuration file"}
	}
	cfg, err := r.File()
	if err != nil {
		out.Fault = err.Error()
		return nil, nil //nolint:nilerr // the fault is the answer
	}
	return shown(cfg, org)
}

// shown returns the text of a configuration for a comparison, or the part of an organisation. The text is empty if the organisation is not
// configured.
func shown(cfg *settings.Config, org string) ([]byte, error) {
	text, err := cfg.Show("")
	if err != nil {
		return nil, err
	}
	return configSection(text, org)
}

// configSection returns the part of an organisation, or the whole text if org is "". The part is empty, but not nil, if the organisation is
// not in the text. The text must be formatted by [settings.Config.Show]: organisations are found by their indentation, because parsing the
// text of 10,000 keys takes half a second.
func configSection(text []byte, org string) ([]byte, error) {
	if org == "" {
		return text, nil
	}
	out, inOrgs, found := []byte{}, false, false
	for line := range bytes.Lines(text) {
		first, begins := bytes.CutPrefix(line, []byte("  - "))
		switch {
		case line[0] > ' ':
			inOrgs, found = string(line) == "orgs:\n", false
		case inOrgs && begins:
			var one struct {
				ID string `yaml:"id"`
			}
			if err := yaml.Unmarshal(first, &one); err != nil {
				return nil, err
			}
			if found = one.ID == org; found {
				out = append(out, first...)
			}
		case found:
			out = append(out, bytes.TrimPrefix(line, []byte("    "))...)
		}
	}
	return out, nil
}

// revision returns the text of a revision, or of the previous one if revision is "".
func (r *Revisions) revision(ctx context.Context, org, revision string, out *ConfigDiff) ([]byte, error) {
	known, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(known, func(k Revision) bool {
		return revision == "" && k.Revision != out.To || revision != "" && k.Revision == revision
	})
	if at < 0 && revision == "" { // the first revision
		out.From = out.To
		return nil, nil
	}
	if at < 0 {
		return nil, adminapi.RefusedError{Status: http.StatusNotFound, Reason: "unknown or expired revision " + revision}
	}
	out.From = known[at].Revision
	packed, err := r.Journal.Get(ctx, list, out.From)
	if err != nil {
		return nil, err
	}
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w", out.From, err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	return configSection(text, org)
}
