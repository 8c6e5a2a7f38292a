package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/gateway/reference"
)

// Server is an HTTP handler with a route for each function of a project. The project can be replaced at any time; see [Server.Serve].
type Server struct {
	session *Session
	hosts   []string
	origin  *http.CrossOriginProtection
	files   map[string]reference.File
	now     atomic.Pointer[Project]
}

// NewServer returns a server for p that accepts only requests for the given hosts. Each host includes the port.
func NewServer(s *Session, p *Project, hosts []string) (*Server, error) {
	files, err := explorer()
	if err != nil {
		return nil, err
	}
	server := &Server{session: s, hosts: hosts, origin: http.NewCrossOriginProtection(), files: files}
	server.Serve(p)
	return server, nil
}

// Serve replaces the served project. Calls in progress continue with the previous project.
func (s *Server) Serve(p *Project) { s.now.Store(p) }

// Hosts returns the values of the Host header, with port, that a browser can use to reach a listener. For a listener on the unspecified
// address, they include all addresses of this machine.
func Hosts(host string, addr net.Addr) ([]string, error) {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, err
	}
	names := []string{host, "localhost", "127.0.0.1", "::1"}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		all, err := net.InterfaceAddrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of this machine: %w", err)
		}
		for _, a := range all {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				names = append(names, p.Addr().String())
			}
		}
	}
	var hosts []string
	for _, name := range names {
		if h := net.JoinHostPort(name, port); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// ServeHTTP implements http.Handler. Because the server requires no credentials, ServeHTTP accepts only the hosts given to [NewServer], and
// refuses calls from web pages of other origins. It also refuses their GET requests, because a GET route may create resources.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(s.hosts, strings.ToLower(r.Host)) {
		fail(w, http.StatusMisdirectedRequest, "unknown host: the server only accepts "+strings.Join(s.hosts, ", "))
		return
	}
	p := s.now.Load()
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if s.own(w, r, p) {
			return
		}
	}
	unsafe := r.Clone(r.Context())
	unsafe.Method = http.MethodPost
	if err := s.origin.Check(unsafe); err != nil {
		fail(w, http.StatusForbidden, "calls from pages of other origins are refused")
		return
	}
	route, args, allowed := p.match(r.Method, r.URL.EscapedPath())
	if route == nil {
		s.unknown(w, r, p, allowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("body exceeds %d MiB", maxPayload>>20))
		return
	}
	s.call(w, r, p, route, args, body)
}

// own serves the server's own pages, such as the API explorer. It returns false if the request is for another path.
func (s *Server) own(w http.ResponseWriter, r *http.Request, p *Project) bool {
	file, ok := s.files[r.URL.Path]
	switch {
	case ok:
		maps.Copy(w.Header(), file.Header)
		_, _ = w.Write(file.Body())
	case r.URL.Path == "/":
		write(w, http.StatusOK, map[string]string{"message": "tollgate dev", "docs": reference.Path})
	case r.URL.Path == "/ping":
		write(w, http.StatusOK, map[string]string{"status": "healthy"})
	case r.URL.Path == "/openapi.json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(p.openapi)
	default:
		return false
	}
	return true
}

// unknown answers a request without a matching route.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request, p *Project, allowed []string) {
	concerns := func(f Fault) bool {
		return f.File == manifestName || strings.HasPrefix(r.URL.Path, prefixOf(f.File)+"/")
	}
	if i := slices.IndexFunc(p.Faults, concerns); i >= 0 {
		fail(w, http.StatusServiceUnavailable, p.Faults[i].Error())
		return
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		fail(w, http.StatusMethodNotAllowed, "path only supports "+strings.Join(allowed, ", "))
		return
	}
	text := "no route for this path; /openapi.json lists all routes"
	unserved := func(f Fault) bool { return concerns(f) && strings.HasPrefix(f.Text, "not served") }
	if i := slices.IndexFunc(p.Notices, unserved); i >= 0 {
		text = p.Notices[i].Error()
	}
	fail(w, http.StatusNotFound, text)
}

// call runs a route and writes the result.
func (s *Server) call(w http.ResponseWriter, r *http.Request, p *Project, route *Route, inPath map[string]string, body []byte) {
	var value any
	var err error
	switch {
	case !route.Endpoint.balanced():
		value, err = s.job(r.Context(), p, route, body)
	case route.Endpoint.Client:
		s.forward(w, r, p, route, body)
		return
	default:
		in := incoming{Body: string(body), Path: inPath}
		if r.Method == http.MethodGet {
			in.Query = r.URL.Query()
		}
		value, err = s.session.Balanced(r.Context(), p, route, in)
	}
	if err != nil {
		s.failed(w, err)
		return
	}
	write(w, http.StatusOK, value)
}

// job runs a job. The body is a JSON object with the input in the member "input", which is optional if the function has no parameters.
func (s *Server) job(ctx context.Context, p *Project, route *Route, body []byte) (any, error) {
	f := route.Function
	var wrapper map[string]json.RawMessage
	input, err := json.RawMessage("{}"), error(nil)
	if len(bytes.TrimSpace(body)) > 0 {
		err = json.Unmarshal(body, &wrapper)
	}
	wrapped, ok := wrapper["input"]
	if ok {
		input = wrapped
	}
	if err != nil || !ok && (len(wrapper) > 0 || len(f.Params) > 0 || route.Endpoint.Client) {
		names := make([]string, len(f.Params))
		for i, p := range f.Params {
			names[i] = fmt.Sprintf("%q: ...", p.Name)
		}
		return nil, &callError{http.StatusBadRequest, `body: arguments must be wrapped in "input": {"input": {` + strings.Join(names, ", ") + "}}"}
	}
	id, output, err := s.session.Job(ctx, p, route, input)
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": id, "status": "COMPLETED", "output": output}, nil
}

// forward passes a request to the endpoint of an image and writes the response.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, p *Project, route *Route, body []byte) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), route.Endpoint.Prefix)
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	header := http.Header{}
	for _, name := range []string{"Content-Type", "Accept"} {
		if v := r.Header.Get(name); v != "" {
			header.Set(name, v)
		}
	}
	a, err := s.session.Forward(r.Context(), p, route.Endpoint, r.Method, path, header, body)
	if err != nil {
		s.failed(w, err)
		return
	}
	w.Header().Set("Content-Type", a.header.Get("Content-Type"))
	w.Header().Set("Content-Security-Policy", "sandbox") // a page from the image must not run scripts with this server's origin
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// failed writes the error of a call.
func (s *Server) failed(w http.ResponseWriter, err error) {
	code := cmp.Or(status(err), http.StatusBadGateway)
	if _, ok := errors.AsType[Fault](err); ok {
		code = http.StatusServiceUnavailable
	}
	if errors.Is(err, errSlow) {
		code = http.StatusGatewayTimeout
	}
	if call, ok := errors.AsType[*callError](err); ok {
		code = call.status
	}
	fail(w, code, err.Error())
}

func fail(w http.ResponseWriter, code int, text string) {
	write(w, code, map[string]string{"error": text})
}

func write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		code = http.StatusBadGateway
		out.Reset()
		out.WriteString(`{"error":"the result is not JSON"}`)
	}
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes())
}

// match finds the route of a request and the values of its path parameters. Routes without parameters take precedence. If no route matches,
// match returns the methods permitted for the path.
func (p *Project) match(method, path string) (found *Route, args map[string]string, allowed []string) {
	best := -1
	for i := range p.Routes {
		r := &p.Routes[i]
		values, ok := r.fits(path)
		if !ok {
			continue
		}
		if r.Method != method {
			allowed = append(allowed, r.Method)
			continue
		}
		if literal := len(parameter.ReplaceAllString(r.Path, "")); literal > best {
			found, args, best = r, values, literal
		}
	}
	slices.Sort(allowed)
	return found, args, slices.Compact(allowed)
}

// fits reports whether an escaped path matches the route.
func (r *Route) fits(path string) (map[string]string, bool) {
	want, got := strings.Split(r.Path, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	args := map[string]string{}
	for i := range want {
		name := parameter.FindStringSubmatch(want[i])
		switch {
		case name == nil && want[i] == got[i]:
		case name != nil && got[i] != "":
			value, err := url.PathUnescape(got[i])
			if err != nil || strings.ContainsAny(value, "/\x00") {
				return nil, false
			}
			args[name[1]] = value
		default:
			return nil, false
		}
	}
	return args, true
}
