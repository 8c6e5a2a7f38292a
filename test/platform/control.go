package platform

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// ControlHandler is the interface that steers the emulator. It is separate from
// the API, takes no key, and must be reachable by the tests only. Every route
// reads and answers JSON; a request that cannot be carried out changes nothing and
// is answered with 400 and {"error": string}.
//
//	GET    /clock                         POST /clock {advance | to, speed}
//	POST   /reset
//	GET    /faults   POST /faults {Fault} DELETE /faults   DELETE /faults/{id}
//	GET    /latency                       PUT  /latency {operation: duration}
//	GET    /calls[?operation=…&since=seq] DELETE /calls
//	GET    /accounts/{id}                 PATCH /accounts/{id} {balance, quota}
//	PUT    /prices {gpu, secure, community, serverless}
//	PUT    /stock  {type, cloud, dataCenter, total}
//	PATCH  /pods/{id} {status, name, cost, locked, gpuUtil, cpuUtil}
//	GET    /sandboxes                     PATCH /sandboxes/{id} {state}
//	POST   /serverless/{id}/builds {Build}
//	GET    /environments/{id of a pod, worker or sandbox}
func (s *Server) ControlHandler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"GET /clock":           s.controlClock,
		"POST /clock":          reading(s.controlMoveClock),
		"POST /reset":          func(r *http.Request) (any, error) { return nil, s.Reset(r.Context()) },
		"GET /faults":          func(*http.Request) (any, error) { return s.Faults(), nil },
		"POST /faults":         reading(func(_ *http.Request, f Fault) (any, error) { return s.addFault(f) }),
		"DELETE /faults":       func(*http.Request) (any, error) { s.ClearFaults(); return nil, nil },
		"DELETE /faults/{id}":  s.controlRemoveFault,
		"GET /latency":         s.controlLatency,
		"PUT /latency":         reading(s.controlSetLatency),
		"GET /calls":           s.controlCalls,
		"DELETE /calls":        func(*http.Request) (any, error) { s.ResetCalls(); return nil, nil },
		"GET /accounts/{id}":   s.controlAccount,
		"PATCH /accounts/{id}": reading(s.controlSetAccount),
		"PUT /prices":          reading(func(_ *http.Request, p SeedPrice) (any, error) { return nil, s.setPrice(p) }),
		"PUT /stock":           reading(func(_ *http.Request, st SeedStock) (any, error) { return nil, s.setStock(st) }),
		"PATCH /pods/{id}":     reading(func(r *http.Request, c PodChange) (any, error) { return nil, s.ChangePod(r.PathValue("id"), c) }),
		"GET /sandboxes":       func(*http.Request) (any, error) { return map[string]any{"sandboxes": s.SandboxBills()}, nil },
		"PATCH /sandboxes/{id}": reading(func(r *http.Request, c struct{ State string }) (any, error) {
			return nil, s.SetSandboxState(r.PathValue("id"), c.State)
		}),
		"POST /serverless/{id}/builds": reading(s.controlAddBuild),
		"GET /environments/{id}":       func(r *http.Request) (any, error) { return s.Environment(r.PathValue("id")) },
	} {
		mux.Handle(pattern, controlled(handle))
	}
	return mux
}

// controlled answers with what handle returns, or with what it refuses.
func controlled(handle func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := handle(r)
		status := http.StatusOK
		switch {
		case err != nil:
			status, v = http.StatusBadRequest, map[string]string{"error": err.Error()}
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // the tester may be gone
	})
}

// reading decodes a control request for handle; names it does not know are refused.
func reading[T any](handle func(*http.Request, T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var v T
		d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		return handle(r, v)
	}
}

func (s *Server) controlClock(*http.Request) (any, error) {
	return map[string]any{"now": s.clock.Now(), "speed": s.clock.Speed()}, nil
}

type clockMove struct {
	Advance string     `json:"advance"`
	To      *time.Time `json:"to"`
	Speed   *float64   `json:"speed"`
}

func (s *Server) controlMoveClock(r *http.Request, move clockMove) (any, error) {
	advance, err := time.ParseDuration(cmp.Or(move.Advance, "0"))
	switch {
	case err != nil:
		return nil, err
	case move.Advance != "" && move.To != nil:
		return nil, errors.New("advance and to exclude each other")
	case advance < 0:
		return nil, fmt.Errorf("advance: %s: the clock never runs backwards", advance)
	case move.Speed != nil && *move.Speed < 0:
		return nil, fmt.Errorf("speed: %v: the clock never runs backwards", *move.Speed)
	case move.To != nil && !s.clock.AdvanceTo(*move.To):
		return nil, fmt.Errorf("to: %s: the clock never runs backwards, and it is past that", stamp(*move.To))
	}
	s.clock.Advance(advance)
	if move.Speed != nil {
		s.clock.SetSpeed(*move.Speed)
	}
	return s.controlClock(r)
}

func (s *Server) controlRemoveFault(r *http.Request) (any, error) {
	if id := r.PathValue("id"); !s.RemoveFault(id) {
		return nil, fmt.Errorf("no fault is called %q", id)
	}
	return nil, nil
}

func (s *Server) controlLatency(*http.Request) (any, error) {
	out := map[string]string{}
	for op, d := range s.Latency() {
		out[op] = d.String()
	}
	return out, nil
}

func (s *Server) controlSetLatency(r *http.Request, wanted map[string]string) (any, error) {
	parsed := map[string]time.Duration{}
	for op, text := range wanted {
		d, err := time.ParseDuration(text)
		if err := errors.Join(err, checkOperation(op)); err != nil {
			return nil, err
		}
		parsed[op] = d
	}
	for op, d := range parsed {
		s.SetLatency(op, d)
	}
	return s.controlLatency(r)
}

func (s *Server) controlCalls(r *http.Request) (any, error) {
	calls := s.Calls()
	if op := r.URL.Query().Get("operation"); op != "" {
		calls = s.CallsTo(op)
	}
	since := int64(0)
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, err
		}
	}
	out := make([]Call, 0, len(calls))
	for _, c := range calls {
		if c.Seq > since {
			out = append(out, c)
		}
	}
	return map[string]any{"calls": out}, nil
}

type accountState struct {
	ID      string  `json:"id"`
	Balance float64 `json:"balance"`
	PerHour float64 `json:"perHour"`
}

func (s *Server) controlAccount(r *http.Request) (any, error) {
	id := r.PathValue("id")
	left, perHour, err := s.Balance(id)
	return accountState{ID: id, Balance: left, PerHour: perHour}, err
}

type accountChange struct {
	Balance *float64 `json:"balance"`
	Quota   *Quota   `json:"quota"`
}

func (s *Server) controlSetAccount(r *http.Request, wanted accountChange) (any, error) {
	var err error
	id := r.PathValue("id")
	if wanted.Balance != nil {
		err = s.SetBalance(id, *wanted.Balance)
	}
	if wanted.Quota != nil {
		err = errors.Join(err, s.SetQuota(id, *wanted.Quota))
	}
	if err != nil {
		return nil, err
	}
	return s.controlAccount(r)
}

func (s *Server) controlAddBuild(r *http.Request, b Build) (any, error) {
	id, err := s.AddBuild(r.PathValue("id"), b)
	return map[string]string{"id": id}, err
}
