package envoytest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// message is a request or response as Envoy holds it.
type message struct {
	pseudo map[string]string
	header http.Header
	body   []byte
}

func newMessage(r *http.Request) *message {
	m := &message{
		pseudo: map[string]string{":method": r.Method, ":path": r.RequestURI, ":authority": r.Host, ":scheme": "http"},
		header: r.Header.Clone(),
	}
	if r.ContentLength >= 0 && r.Header.Get("Content-Length") == "" && r.ContentLength > 0 {
		m.header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	if len(r.TransferEncoding) > 0 {
		m.header.Set("Transfer-Encoding", "chunked")
	}
	// The headers that a real Envoy adds at the edge, which must not travel on.
	m.header.Set("X-Forwarded-Proto", "http")
	m.header.Set("X-Envoy-External-Address", "192.0.2.1")
	return m
}

// proto writes the headers as Envoy sends them: lower-case names, raw values.
func (m *message) proto() *corev3.HeaderMap {
	out := &corev3.HeaderMap{}
	for _, name := range slices.Sorted(maps.Keys(m.pseudo)) {
		out.Headers = append(out.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(m.pseudo[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(m.header)) {
		for _, v := range m.header[name] {
			out.Headers = append(out.Headers, &corev3.HeaderValue{Key: strings.ToLower(name), RawValue: []byte(v)})
		}
	}
	return out
}

// apply carries out a reply.
func (m *message) apply(c *extprocv3.CommonResponse) error {
	if c == nil {
		return nil
	}
	if c.Status != extprocv3.CommonResponse_CONTINUE {
		return fmt.Errorf("status %s, want CONTINUE", c.Status)
	}
	if err := m.mutate(c.HeaderMutation); err != nil {
		return err
	}
	if c.BodyMutation == nil {
		return nil
	}
	m.body = c.BodyMutation.GetBody()
	if got := m.header.Get("Content-Length"); got != strconv.Itoa(len(m.body)) {
		return fmt.Errorf("content-length %q with a body of %d bytes", got, len(m.body))
	}
	return nil
}

func (m *message) mutate(h *extprocv3.HeaderMutation) error {
	for _, name := range h.GetRemoveHeaders() {
		if strings.HasPrefix(name, ":") || name == "host" {
			return fmt.Errorf("removal of %s", name)
		}
		m.header.Del(name)
	}
	for _, s := range h.GetSetHeaders() {
		if err := m.set(s); err != nil {
			return err
		}
	}
	return nil
}

func (m *message) set(s *corev3.HeaderValueOption) error {
	name, value := s.GetHeader().GetKey(), string(s.GetHeader().GetRawValue())
	if s.GetHeader().GetValue() != "" {
		return fmt.Errorf("header %s sent as value, which Envoy drops", name)
	}
	if name != strings.ToLower(name) {
		return fmt.Errorf("header name %s is not in lower case", name)
	}
	switch name {
	case ":path":
		m.pseudo[name] = value
		return nil
	case ":method", ":authority", ":scheme", "host":
		return errors.New("mutation of a routing header: " + name)
	}
	if s.AppendAction == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
		m.header.Del(name)
	}
	m.header.Add(name, value)
	return nil
}
