package operator

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// Revisions are kept in this number and for this time.
const (
	maxRevisions = 50
	keptFor      = 365 * 24 * time.Hour
)

// list is the one list of revisions.
const list = "all"

// Revisions keeps and compares. All fields are required but File.
type Revisions struct {
	Journal *store.CappedLog
	// Gateway and Version are this gateway's.
	Gateway, Version string
	*view.Current
	// File reads the configuration anew, without its secrets; nil for a gateway without a file.
	File func() (*settings.Config, error)
}

// NewJournal returns where revisions are kept. It does not dial.
func NewJournal(client store.Client, prefix settings.Prefix) *store.CappedLog {
	return &store.CappedLog{Client: client, Prefix: prefix.Decisions() + "revisions:", MaxLines: maxRevisions, Retention: keptFor}
}

// List returns the configurations that were in force, the latest first.
func (r *Revisions) List(ctx context.Context) ([]Revision, error) {
	entries, err := r.Journal.List(ctx, list)
	out := []Revision{}
	for _, text := range entries {
		var one Revision
		if json.Unmarshal([]byte(text), &one) != nil || len(out) > 0 && out[len(out)-1].Revision == one.Revision {
			continue // of another version, or two gateways were as fast
		}
		out = append(out, one)
	}
	return out, err
}

// Save stores the configuration in force, unless the latest one that was saved has its revision.
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
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	one, err := json.Marshal(Revision{Revision: cfg.Revision, Loaded: r.Load().Loaded.UTC(), Gateway: r.Gateway, Version: r.Version})
	if err != nil {
		return err
	}
	if err := r.Journal.Put(ctx, list, cfg.Revision, packed.Bytes()); err != nil {
		return err
	}
	if len(known) >= maxRevisions { // the list forgets the last one
		last := known[len(known)-1].Revision
		if last != cfg.Revision && !slices.ContainsFunc(known[:len(known)-1], func(k Revision) bool { return k.Revision == last }) {
			if err := r.Journal.Drop(ctx, list, last); err != nil {
				return err
			}
		}
	}
	return r.Journal.Add(ctx, list, one)
}

// Diff compares the configuration in force, or the section of an organisation, with AgainstFile, with a revision, or with the revision before for
// "". It returns row.ErrNoOrg for an organisation that is not configured.
func (r *Revisions) Diff(ctx context.Context, org, to string) (*ConfigDiff, error) {
	cfg := r.Config()
	now, err := shown(cfg, org)
	if err != nil {
		return nil, err
	}
	if now == nil {
		return nil, row.ErrNoOrg
	}
	out := &ConfigDiff{To: cfg.Revision}
	var other []byte
	if to == AgainstFile {
		other, err = r.file(org, out)
	} else {
		other, err = r.revision(ctx, org, to, out)
	}
	if err != nil || other == nil {
		return out, err
	}
	if to == AgainstFile { // the file is to be in force next
		out.Diff = string(diff.Diff(out.To, now, out.From, other))
		out.From, out.To = out.To, out.From
		return out, nil
	}
	out.Diff = string(diff.Diff(out.From, other, out.To, now))
	return out, nil
}

// file returns the text of the file; nil and a fault if it cannot be read.
func (r *Revisions) file(org string, out *ConfigDiff) ([]byte, error) {
	out.From = AgainstFile
	if r.File == nil {
		return nil, row.RefusedError{Status: http.StatusConflict, Reason: "this gateway was started without a configuration file"}
	}
	cfg, err := r.File()
	if err != nil {
		out.Fault = err.Error()
		return nil, nil //nolint:nilerr // the fault is the answer
	}
	text, err := shown(cfg, org)
	return orNone(text), err
}

// orNone is the text of an organisation, empty for one that is not configured there.
func orNone(text []byte) []byte {
	if text == nil {
		return []byte{}
	}
	return text
}

// shown is the configuration as it is compared, or the section of an organisation, nil if it has none.
func shown(cfg *settings.Config, org string) ([]byte, error) {
	text, err := cfg.Show("")
	if err != nil {
		return nil, err
	}
	return configSection(text, org)
}

// configSection returns the section of an organisation, or the whole for "".
func configSection(text []byte, org string) ([]byte, error) {
	if org == "" {
		return text, nil
	}
	var all struct {
		Orgs []yaml.Node `yaml:"orgs"`
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for i := range all.Orgs {
		var one struct {
			ID string `yaml:"id"`
		}
		if err := all.Orgs[i].Decode(&one); err != nil {
			return nil, err
		}
		if one.ID == org {
			return yaml.Marshal(&all.Orgs[i])
		}
	}
	return nil, nil
}

// revision returns the text of a revision, or of the one before that in force for "".
func (r *Revisions) revision(ctx context.Context, org, revision string, out *ConfigDiff) ([]byte, error) {
	known, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(known, func(k Revision) bool {
		return revision == "" && k.Revision != out.To || revision != "" && k.Revision == revision
	})
	if at < 0 && revision == "" { // it is the first
		out.From = out.To
		return nil, nil
	}
	if at < 0 {
		return nil, row.RefusedError{Status: http.StatusNotFound, Reason: "revision " + revision + " is not kept"}
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
	if err == nil {
		text, err = configSection(text, org)
	}
	return orNone(text), err
}
