package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Phase is the phase of a change that a line records.
type Phase string

// Phases.
const (
	// Intent stands before a change, Result behind it.
	Intent Phase = "intent"
	Result Phase = "result"
	// Loaded says that a configuration came into force.
	Loaded Phase = "loaded"
	// Read says that an admin looked at the records of callers.
	Read Phase = "read"
)

// Record describes a change, without secrets and without bodies.
type Record struct {
	// Decision is the id of the exchange, which tollgate explain knows.
	Decision string `json:"decision,omitempty"`
	// Org, Team and Key are the caller; Who is the name of an admin, "admin" for the shared
	// token, "unauthenticated" where the admin listener requires none, "gateway" for its
	// own acts, or "link" for the holder of a signed link of a notice.
	Org  string `json:"org,omitempty"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
	// Subject is whom the caller's token was issued to.
	Subject string `json:"subject,omitempty"`
	Who     string `json:"who,omitempty"`
	// Peer is the caller's address.
	Peer string `json:"peer,omitempty"`
	// Dialect is the caller's: v2, v1 or graphql.
	Dialect string `json:"dialect,omitempty"`
	// Operation is that of v2, or method and path of the admin API, and Query the query
	// of the latter.
	Operation string `json:"operation,omitempty"`
	Query     string `json:"query,omitempty"`
	// Kind and Verb name the change, Resource and Name its subject.
	Kind     string `json:"kind,omitempty"`
	Verb     string `json:"verb,omitempty"`
	Resource string `json:"resource,omitempty"`
	Name     string `json:"name,omitempty"`
	// Labels are those of a resource that is made, name=value, separated by commas.
	Labels string `json:"labels,omitempty"`
	// PerHour is the cost of the resource then, in USD.
	PerHour json.Number `json:"per_hour,omitempty"`
	// Status is the answer's, of a result. Carried is the outcome of a call to the
	// platform: "sent" without an answer, "answered", or "not sent".
	Status  int    `json:"status,omitempty"`
	Carried string `json:"carried,omitempty"`
	// Revision is the configuration's.
	Revision string `json:"revision,omitempty"`
	// Lowers says that the change ends or lessens a cost: its intent may use
	// the room that is kept for such.
	Lowers bool `json:"-"`
}

// line is a line of the file.
type line struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Phase Phase     `json:"phase"`
	// Of is the Seq of the intent that a result belongs to.
	Of int64 `json:"of,omitempty"`
	Record
	// Prev is the SHA-256 of the line before, in hexadecimal digits; that of the first
	// line is empty.
	Prev string `json:"prev"`
}

// Log writes lines. It is safe for concurrent use. Use Open.
type Log struct {
	config logfile.File
	sync   bool
	now    func() time.Time

	mu       sync.Mutex // guards what follows
	file     *logfile.Writer
	seq      int64  // of the last line
	head     string // its sum
	shippers []*Shipper
	looks    *lru.Cache[look, time.Time]
}

// Unfinished opens the log to write on behind its last line. A line that a crash left
// incomplete is ended, and stays in the chain as it is.
func Open(cfg *settings.Audit, now func() time.Time, logger *slog.Logger) (*Log, error) {
	looks, err := lru.New[look, time.Time](maxLooks)
	if err != nil {
		return nil, err
	}
	l := &Log{config: *cfg.File, sync: cfg.Sync, now: now, looks: looks}
	end, err := tail(cfg.File.Path)
	if err == nil && !bytes.Contains(end, []byte("\n")) { // the one before was put aside just now
		var before []byte
		before, err = tail(cfg.File.Aside(1))
		end = append(before, end...)
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if l.file, err = logfile.Open(*cfg.File); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l.file.Reserve(reserve)
	text, whole := bytes.CutSuffix(end, []byte("\n"))
	for i, text := range slices.Backward(bytes.Split(text, []byte("\n"))) {
		if len(end) == 0 {
			break
		}
		if l.head == "" {
			l.head = sum(text)
		}
		var known line
		if err := json.Unmarshal(text, &known); err == nil && known.Seq > 0 {
			l.seq += known.Seq
			break
		}
		l.seq++ // it has a number, which cannot be read
		if i == 0 {
			return nil, errors.Join(fmt.Errorf("audit log: %s ends in no line of one", cfg.File.Path), l.file.Close())
		}
	}
	if len(end) > 0 && !whole {
		logger.Warn("the last line of the audit log is incomplete", "file", cfg.File.Path)
		if err := l.file.WriteReserved([]byte("\n")); err != nil {
			return nil, errors.Join(fmt.Errorf("audit log: %w", err), l.file.Close())
		}
	}
	return l, nil
}

// reserve is the room that a full disk has for stops, deletes and the results of what
// is under way, in bytes: some 1,000 changes.
const reserve = 1 << 20

// maxLine bounds a line, in bytes.
const maxLine = 64 << 10

// tail returns the end of a file from where a line begins, nil if it is empty, no
// file, or not there.
func tail(path string) ([]byte, error) {
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrIrregular) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	text := make([]byte, min(info.Size(), 2*maxLine))
	if _, err := f.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return nil, err
	}
	if int64(len(text)) < info.Size() {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text, nil
}

// sum returns the digest of a line without its end, which the next line holds.
func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// Intent writes a planned change and returns the number of its line. An
// error means that it must not be done. A disk that is full has room kept for what
// lowers costs, and for results.
func (l *Log) Intent(r Record) (seq int64, err error) { return l.write(Intent, 0, r) }

// Result writes the outcome of an intent.
func (l *Log) Result(of int64, r Record) error {
	_, err := l.write(Result, of, r)
	return err
}

// Loaded writes that a configuration came into force.
func (l *Log) Loaded(revision string) error {
	_, err := l.write(Loaded, 0, Record{Revision: revision})
	return err
}

// look is a question about records of callers, and its asker.
type look struct{ who, operation, query string }

const (
	// lookEvery is the least distance of two lines of one look, and maxLooks the number of looks that are remembered.
	lookEvery, maxLooks = 15 * time.Minute, 4096
)

// ReadQuery is the query of a look, without the parameters for one part of its answer.
func ReadQuery(asked url.Values) string {
	asked = maps.Clone(asked)
	for _, part := range []string{"before", "cursor", "limit", "sort"} {
		asked.Del(part)
	}
	return asked.Encode()
}

// Read writes that an admin or a lead looked at the records of callers: once in 15 minutes for each who, operation and query, so that a page that
// asks again and again does not fill the log.
func (l *Log) Read(r Record) error {
	this, now := look{r.Who + r.Org + "/" + r.Key, r.Operation, r.Resource + "?" + r.Query}, l.now()
	if at, ok := l.looks.Get(this); ok && now.Sub(at) < lookEvery {
		return nil
	}
	_, err := l.write(Read, 0, r)
	if err == nil {
		l.looks.Add(this, now)
	}
	return err
}

func (l *Log) write(phase Phase, of int64, r Record) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := json.Marshal(line{Seq: l.seq + 1, Time: l.now().UTC(), Phase: phase, Of: of, Record: r, Prev: l.head})
	if err == nil && len(text) >= maxLine {
		err = fmt.Errorf("a line of %d bytes", len(text))
	}
	if err == nil {
		write := l.file.WriteLines
		if r.Lowers || phase == Result {
			write = l.file.WriteReserved
		}
		err = write(append(text, '\n'))
	}
	if err == nil && l.sync && phase == Intent {
		err = l.file.Sync()
	}
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	l.seq, l.head = l.seq+1, sum(text)
	for _, s := range l.shippers {
		s.wake()
	}
	return l.seq, nil
}

// last returns the number of the last line.
func (l *Log) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
