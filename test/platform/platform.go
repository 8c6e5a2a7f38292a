package platform

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
)

// maxBody is the size limit of a REST request body and of a deployment request
// expanded with its template, in bytes.
const maxBody = 102_400

// Server is an emulated platform. It is an http.Handler for the REST API;
// RunHandler and ControlHandler are its other faces. It is safe for concurrent
// use, and starts goroutines for nothing but the functions of Options.Worker.
type Server struct {
	opts      Options
	timing    Timing
	listed    *Catalog // as it was given
	clock     *Clock
	log       *slog.Logger
	calls     *recorder
	faults    *faults
	rest      *surface
	functions *functions                       // nil runs none
	runURL    string                           // empty is the address each call was made to
	keys      map[[sha256.Size]byte]credential // never changes

	life context.Context //nolint:containedctx // ends with Close, and every open stream with it
	end  context.CancelFunc

	mu       sync.Mutex // guards everything below
	store    *store     // nil keeps the state in memory only
	accounts map[string]*account
	catalog  *catalog
	seed     *Seed // the last one applied; nil is none
	rand     *rand.Rand
	changed  chan struct{} // closed at the next change of state, if waiting
	waiting  bool
}

// New returns an emulator made of opts. It fails on options that contradict
// themselves and on a data file that cannot be read.
func New(opts Options) (*Server, error) {
	if len(opts.Accounts) == 0 {
		opts.Accounts = []Account{{ID: "default", Key: DefaultKey}}
	}
	s := &Server{
		opts:     opts,
		timing:   opts.Timing.withDefaults(),
		clock:    opts.Clock,
		log:      opts.Logger,
		runURL:   strings.TrimSuffix(opts.RunURL, "/"),
		calls:    newRecorder(opts.KeepCalls),
		changed:  make(chan struct{}),
		accounts: map[string]*account{},
		keys:     map[[sha256.Size]byte]credential{},
		rand:     rand.New(rand.NewPCG(opts.Seed, 1)),
	}
	var err error
	if s.functions, err = newFunctions(opts.Worker); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.Background())
	if s.clock == nil {
		s.clock = RealClock()
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.faults = newFaults(opts)
	s.rest = &surface{
		routes:  newRouteTable(restRoutes()),
		limit:   func(*route) int64 { return maxBody },
		problem: func(p *problem) (object, string) { return p.record(), "application/problem+json" },
		counts:  true,
	}
	if s.listed = opts.Catalog.clone(); opts.Catalog == nil {
		s.listed = DefaultCatalog()
	}
	if s.catalog, err = newCatalog(s.listed); err != nil {
		return nil, err
	}
	if err := s.openAccounts(opts.Accounts); err != nil {
		return nil, err
	}
	if opts.DataFile != "" {
		if err := s.openStore(opts.DataFile); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// ServeHTTP answers one request to the REST API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serve(s.rest, w, r)
}

func (s *Server) serve(on *surface, w http.ResponseWriter, r *http.Request) {
	(&exchange{s: s, w: w, r: r, surface: on}).serve()
}

// Clock returns the emulator's clock.
func (s *Server) Clock() *Clock { return s.clock }

// Close ends open streams and functions that run, and writes what is to be kept. The server must not be
// used afterwards.
func (s *Server) Close() error {
	s.end()
	if s.functions != nil {
		s.functions.running.Wait()
	}
	return s.closeStore()
}

// newIDLocked returns an identifier of ten lower-case letters and digits that taken
// does not know yet.
func (s *Server) newIDLocked(taken func(string) bool) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	for {
		var id [10]byte
		for i := range id {
			id[i] = letters[s.rand.IntN(len(letters))]
		}
		if !taken(string(id[:])) {
			return string(id[:])
		}
	}
}

// getOpenAPI serves the document of the options.
func (x *exchange) getOpenAPI() (reply, error) {
	if x.s.opts.OpenAPI == nil {
		return reply{}, notFound("document")
	}
	return ok(json.RawMessage(x.s.opts.OpenAPI)), nil
}
