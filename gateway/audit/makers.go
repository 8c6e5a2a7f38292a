package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// adoption is the operation that changes the owner of a resource.
const adoption = http.MethodPost + " /admin/spend/adopt"

// Creators returns the creators of an organisation's resources by resource ID. It reads them from audit log files, which must be passed
// oldest first. Each Record is copied from the record of the create call. If an admin has assigned the resource to another owner later, the
// Record has that owner; a Record with a team but no key was assigned by an admin. If the files contain no line of an audit log, Creators
// returns an error.
func Creators(org string, files ...string) (map[string]Record, error) {
	m := creators{org: org, intents: make(map[int64]Record), made: make(map[string]Record)}
	for _, name := range files {
		if err := m.read(name); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
	}
	if !m.found {
		return nil, fmt.Errorf("audit log: %s: contains no entries", strings.Join(files, ", "))
	}
	return m.made, nil
}

// Files returns the file names of a log that exist, oldest first.
func Files(f *logfile.File) []string {
	return slices.DeleteFunc(names(f), func(name string) bool {
		_, err := os.Stat(name)
		return errors.Is(err, fs.ErrNotExist)
	})
}

type creators struct {
	org     string
	intents map[int64]Record // intents without a result so far
	made    map[string]Record
	found   bool // a line of an audit log
}

func (m *creators) read(name string) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	in := bufio.NewScanner(file)
	in.Buffer(make([]byte, 0, 4<<10), maxLine)
	for in.Scan() {
		m.take(in.Bytes())
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// take processes a line. It ignores lines that a crash left incomplete.
func (m *creators) take(text []byte) {
	l := parse(text)
	m.found = m.found || l.Phase != ""
	switch l.Phase {
	case Intent:
		if l.Operation == adoption || l.Org == m.org && l.Verb == "create" {
			m.intents[l.Seq] = l.Record
		}
	case Result:
		if r, ok := m.intents[l.Of]; ok {
			m.ended(r, l.Record)
		}
		delete(m.intents, l.Of)
	case Loaded, Read:
	}
}

func (m *creators) ended(r, result Record) {
	if r.Operation != adoption {
		if result.Resource != "" {
			m.made[result.Resource] = r
		}
		return
	}
	q, err := url.ParseQuery(r.Query)
	if err != nil || result.Status != http.StatusOK || q.Get("org") != m.org {
		return
	}
	r = m.made[q.Get("id")]
	r.Org, r.Team, r.Key = m.org, q.Get("team"), q.Get("key")
	m.made[q.Get("id")] = r
}
