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

// Phase is the type of a line.
type Phase string

// Phases.
const (
	// Intent is written before a change, Result after it.
	Intent Phase = "intent"
	Result Phase = "result"
	// Loaded is written when a configuration takes effect.
	Loaded Phase = "loaded"
	// Read is written when an admin reads records of callers.
	Read Phase = "read"
)

// Record describes a change, without secrets and bodies.
type Record struct {
	// Decision is the decision ID of the exchange, which tollgate explain accepts.
	Decision string `json:"decision,omitempty"`
	// Org, Team and Key identify the caller. Who is the name of an admin, "admin" for the shared token, "unauthenticated" if the
	// admin listener requires no token, "gateway" for its own actions, or "link" for the holder of a signed link in a notification.
	Org  string `json:"org,omitempty"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
	// Subject is the subject of the caller's token.
	Subject string `json:"subject,omitempty"`
	Who     string `json:"who,omitempty"`
	// Peer is the address of the caller.
	Peer string `json:"peer,omitempty"`
	// Dialect is the API the caller used: v2, v1 or graphql.
	Dialect string `json:"dialect,omitempty"`
	// Operation is the v2 operation, or method and path of the admin API. Query is the query of an admin API request.
	Operation string `json:"operation,omitempty"`
	Query     string `json:"query,omitempty"`
	// Kind and Verb describe the change. Resource and Name identify its subject.
	Kind     string `json:"kind,omitempty"`
	Verb     string `json:"verb,omitempty"`
	Resource string `json:"resource,omitempty"`
	Name     string `json:"name,omitempty"`
	// Summary describes the subject of an answer to an approval request, for a result.
	Summary string `json:"summary,omitempty"`
	// Labels are the labels of a new resource as name=value, separated by commas.
	Labels string `json:"labels,omitempty"`
	// PerHour is the resulting cost of the resource in USD per hour.
	PerHour json.Number `json:"per_hour,omitempty"`
	// Status is the status of the response, for a result. Carried is the outcome of a call to the platform: "sent" (no response),
	// "answered", or "not sent".
	Status  int    `json:"status,omitempty"`
	Carried string `json:"carried,omitempty"`
	// Revision is the revision of the configuration.
	Revision string `json:"revision,omitempty"`
	// Lowers is set if the change ends or reduces a cost. Its intent may use the reserved disk space.
	Lowers bool `json:"-"`
}

// Subject is implemented by responses that describe the subject of a change for the audit log.
type Subject interface {
	AuditSubject() (kind, id, summary string)
}

// line is a line of the file.
type line struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Phase Phase     `json:"phase"`
	// Of is the Seq of the intent to which a result belongs.
	Of int64 `json:"of,omitempty"`
	Record
	// Prev is the SHA-256 of the previous line in hexadecimal, or "" for the first line.
	Prev string `json:"prev"`
}

// Log appends lines to the audit log. It is safe for concurrent use. Create it with Open.
type Log struct {
	config logfile.File
	sync   bool
	now    func() time.Time

	mu       sync.Mutex // guards the fields below
	file     *logfile.Writer
	seq      int64  // number of the last line
	head     string // its digest
	shippers []*Shipper
	looks    *lru.Cache[look, time.Time]
}

// Open opens the log for appending. An incomplete line left by a crash is terminated and stays in the chain.
func Open(cfg *settings.Audit, now func() time.Time, logger *slog.Logger) (*Log, error) {
	looks, _ := lru.New[look, time.Time](maxLooks) // lru.New fails only for a size below 1
	l := &Log{config: *cfg.File, sync: cfg.Sync, now: now, looks: looks}
	end, err := tail(cfg.File.Path)
	if err == nil && !bytes.Contains(end, []byte("\n")) { // the file was just rotated
		var before []byte
		before, err = tail(cfg.File.RotatedName(1))
		end = append(before, end...)
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if l.file, err = logfile.Open(*cfg.File, logger); err != nil {
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
		l.seq++ // it counts, although its number cannot be read
		if i == 0 {
			return nil, errors.Join(fmt.Errorf("audit log: %s does not end with an audit log line", cfg.File.Path), l.file.Close())
		}
	}
	if len(end) > 0 && !whole {
		logger.Warn("last line of the audit log is incomplete", "file", cfg.File.Path)
		if err := l.file.WriteReserved([]byte("\n")); err != nil {
			return nil, errors.Join(fmt.Errorf("audit log: %w", err), l.file.Close())
		}
	}
	return l, nil
}

// reserve is the disk space in bytes that is kept for stops, deletes and results of changes in progress when the disk is full:
// about 1,000 changes.
const reserve = 1 << 20

// maxLine limits the length of a line, in bytes.
const maxLine = 64 << 10

// tail returns the end of a file from the beginning of a line, or nil if the file is empty, not regular, or missing.
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

// sum returns the digest of a line without its newline, which the next line contains.
func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// Intent writes a planned change and returns the number of its line. If it returns an error, the change must not be made. On a full
// disk, reserved space is used for results and for changes that reduce costs.
func (l *Log) Intent(r Record) (seq int64, err error) { return l.write(Intent, 0, r) }

// Result writes the result of an intent, which is identified by the line number that Intent returned.
func (l *Log) Result(intent int64, r Record) error {
	_, err := l.write(Result, intent, r)
	return err
}

// Loaded writes a line that says that a configuration took effect.
func (l *Log) Loaded(revision string) error {
	_, err := l.write(Loaded, 0, Record{Revision: revision})
	return err
}

// look identifies a read of callers' records.
type look struct{ who, operation, query string }

const (
	// lookEvery is the minimum interval between two lines for the same read. maxLooks is the number of reads that are remembered.
	lookEvery, maxLooks = 15 * time.Minute, 4096
)

// ReadQuery returns the query of a read request, but omits the parameters that select a part of the result, such as a page.
func ReadQuery(asked url.Values) string {
	asked = maps.Clone(asked)
	for _, part := range []string{"before", "cursor", "limit", "sort"} {
		asked.Del(part)
	}
	return asked.Encode()
}

// Read writes a line that says that an admin or a lead read records of callers. It writes the same combination of Who, Operation and Query
// at most once in 15 minutes, so that a page that refreshes itself does not fill the log.
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
		err = fmt.Errorf("line of %d bytes is too long", len(text))
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
