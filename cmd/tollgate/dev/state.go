package dev

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
)

// State stores the endpoints of a project in .tollgate/dev.json. Several processes can share the file: each access reads the file, and each
// change replaces the file under a lock. State does not follow symbolic links out of the project.
type State struct {
	root    *os.Root
	project string
}

// Entry is an endpoint that was created or is being created.
type Entry struct {
	// ID is the platform's ID, or "" until the gateway has confirmed that the endpoint was created.
	ID string `json:"id,omitempty"`
	// Key (the idempotency key), Labels and Body are the parts of the request that creates the endpoint. Sending the request again does not
	// create a second endpoint.
	Key    string          `json:"key"`
	Labels string          `json:"labels,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	// Generation is part of the idempotency key. It increases before an endpoint with the same name is created again.
	Generation int `json:"generation"`
	// Digest and Kind describe the configuration of the endpoint.
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
	// Hourly is the maximum cost per hour in USD.
	Hourly float64 `json:"hourly"`
	// Emulated is true for an endpoint of an emulator, which is lost when the emulator ends.
	Emulated bool      `json:"emulated,omitempty"`
	Made     time.Time `json:"made"`
}

// entries holds endpoints by gateway and name.
type entries map[string]map[string]*Entry

// sorted iterates over a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// in returns the endpoints of a gateway. The caller may add entries to the map.
func (e entries) in(gateway string) map[string]*Entry {
	if e[gateway] == nil {
		e[gateway] = map[string]*Entry{}
	}
	return e[gateway]
}

// Names of the files.
const (
	stateDir  = ".tollgate"
	stateFile = stateDir + "/dev.json"
	lockFile  = stateDir + "/dev.lock"
	serveFile = stateDir + "/serve.lock"
)

// OpenState opens the state of the project in dir. owner identifies the user and machine. [State.Read] returns an error if the state
// belongs to another owner or directory, for example because the state file was copied with the project.
func OpenState(dir, owner string) (*State, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("project: %w", err)
	}
	sum := sha256.Sum256([]byte(owner + "\x00" + dir))
	s := &State{root: root, project: hex.EncodeToString(sum[:])}
	err = root.Mkdir(stateDir, 0o700)
	if err == nil {
		err = root.WriteFile(stateDir+"/.gitignore", []byte("*\n"), 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, errors.Join(fmt.Errorf("state: %w", err), root.Close())
	}
	return s, nil
}

// Close closes the project directory.
func (s *State) Close() error { return s.root.Close() }

// ErrServed is returned by [State.Serve] if another process serves the directory.
var ErrServed = errors.New("another 'tollgate dev' serves this directory; stop it first")

// Serve locks the directory for one server until release is called.
func (s *State) Serve() (release func() error, err error) {
	release, err = s.lock(serveFile, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrServed
	}
	return release, err
}

func (s *State) lock(name string, how int) (release func() error, err error) {
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(fmt.Errorf("state: lock %s: %w", name, err), f.Close())
	}
	return f.Close, nil
}

// Read returns all entries. It returns an error if the file is invalid or belongs to another owner.
func (s *State) Read() (entries, error) {
	data, err := s.root.ReadFile(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return entries{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	var kept struct {
		Project  string
		Gateways entries
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		return nil, fmt.Errorf("state: %s: %w", stateFile, err)
	}
	if kept.Project != s.project {
		return nil, fmt.Errorf("state: %s was written in another directory or by another user; remove the file if its endpoints are not yours",
			stateFile)
	}
	for _, all := range kept.Gateways {
		for name, e := range all {
			if e == nil || !endpointName.MatchString(name) {
				return nil, fmt.Errorf("state: %s: invalid endpoint %q", stateFile, name)
			}
		}
	}
	if kept.Gateways == nil {
		kept.Gateways = entries{}
	}
	return kept.Gateways, nil
}

// Change reads the state file, passes its entries to the function change, which may modify them, and writes the entries back. Change
// replaces the file atomically, and syncs the new file before it returns.
func (s *State) Change(change func(entries)) (err error) {
	release, err := s.lock(lockFile, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	all, err := s.Read()
	if err != nil {
		return err
	}
	change(all)
	data, err := json.MarshalIndent(map[string]any{"project": s.project, "gateways": all}, "", "  ")
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := (files.Target{Path: files.ConfinedPath(s.root.Name(), stateFile)}).Replace(data); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// put stores an endpoint.
func (s *State) put(gateway, name string, e *Entry) error {
	return s.Change(func(all entries) { all.in(gateway)[name] = e })
}

// end removes an endpoint but keeps its generation for the next endpoint with the same name.
func (s *State) end(gateway, name string) error {
	return s.Change(func(all entries) {
		if e := all.in(gateway)[name]; e != nil {
			*e = Entry{Generation: e.Generation, Emulated: e.Emulated}
		}
	})
}

// Drop removes the entries of emulated endpoints at the gateway with the given URL, because the emulator lost these endpoints when it
// ended. It keeps the entries of real endpoints at this URL and returns an error if there are any.
func (s *State) Drop(gateway string) error {
	var kept error
	err := s.Change(func(all entries) {
		maps.DeleteFunc(all[gateway], func(_ string, e *Entry) bool { return e.Emulated })
		if len(all[gateway]) == 0 {
			delete(all, gateway)
		} else {
			kept = fmt.Errorf("state: this directory has endpoints at the real gateway %s; undeploy these endpoints first", gateway)
		}
	})
	return errors.Join(err, kept)
}
