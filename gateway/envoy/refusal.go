package envoy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Refusal is a configuration that an Envoy rejected. It ends when all connected Envoys of the group have accepted the current
// configuration.
type Refusal struct {
	// Since is the time of the first rejection after the last accepted configuration.
	Since time.Time `json:"since"`
	Node  string    `json:"node"`
	// Type, Version and Reason describe the latest rejection. Reason is Envoy's error text.
	Type    string `json:"type"`
	Version string `json:"version"`
	Reason  string `json:"reason"`
	// Withdrawn is true if the group was switched back to its previous configuration. Otherwise there is no previous configuration, or
	// the rejected configuration is still being tried.
	Withdrawn bool `json:"withdrawn"`

	typeURL string
}

// maxSaid limits the stored error text of an Envoy, in bytes. The text is logged, stored in Redis, and sent to other gateways.
const maxSaid = 1000

// clipReason shortens an error text to the stored length.
func clipReason(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxSaid)], "")
}

// refuse records that a node rejected a version. The caller must hold mu.
func (s *Server) refuse(n *node, typeURL, version, reason string) {
	t := n.of(typeURL)
	t.refused, t.reason = version, cmp.Or(clipReason(reason), "no reason given")
	s.refused.Add(context.Background(), 1, //nolint:forbidigo // there is no request context
		metric.WithAttributes(attribute.String("group", n.group), attribute.String("type", short(typeURL))))
	s.deps.Logger.Error("Envoy refused its configuration", "node", n.id, "group", n.group, "type", short(typeURL),
		"version", version, "reason", t.reason)
	if p := s.groups[n.group]; p != nil {
		r := &Refusal{Since: s.deps.Now(), Node: n.id, Type: short(typeURL), Version: version, Reason: t.reason, typeURL: typeURL}
		if p.refused != nil {
			r.Since, r.Withdrawn = p.refused.Since, p.refused.Withdrawn
		}
		p.refused = r
	}
	select {
	case s.withdrawn <- struct{}{}:
	default: // already recorded
	}
}

// review ends the refusals of groups in which all Envoys have accepted the configuration. The caller must hold mu.
func (s *Server) review() {
	for id, p := range s.groups {
		if p.refused != nil && !p.refused.Withdrawn && s.taken(id, p.refused.typeURL) {
			s.deps.Logger.Info("all Envoys accepted their configuration", "group", id, "type", p.refused.Type)
			p.refused = nil
		}
	}
}

// taken reports whether the group has at least one Envoy, and all its Envoys have the served version of a type. The caller must hold mu.
func (s *Server) taken(group, typeURL string) bool {
	served, found := s.version(group, typeURL), false
	for _, n := range s.nodes {
		if n.group != group {
			continue
		}
		t := n.types[typeURL]
		if t == nil || t.reason != "" || s.accepted(n, t, typeURL) != served {
			return false
		}
		found = true
	}
	return found && served != ""
}

// accepted returns the version of a type at a node: the version last accepted, or the version of the resources that the node received from
// another gateway. The caller must hold mu.
func (s *Server) accepted(n *node, t *acceptance, typeURL string) string {
	if t.accepted != "" || len(t.brought) == 0 {
		return t.accepted
	}
	snapshot, err := s.cache.GetSnapshot(n.group)
	if err != nil || !maps.Equal(t.brought, snapshot.GetVersionMap(typeURL)) {
		return ""
	}
	return snapshot.GetVersion(typeURL)
}

// Report is the state of the Envoys connected to one gateway.
type Report struct {
	// Nodes counts the Envoys by group.
	Nodes map[string]int64 `json:"nodes"`
	// Refused holds the current refusals by group.
	Refused map[string]Refusal `json:"refused,omitempty"`
}

// Report returns the report of this gateway.
func (s *Server) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Nodes: make(map[string]int64), Refused: make(map[string]Refusal)}
	for id, p := range s.groups {
		r.Nodes[id] = 0
		if p.refused != nil {
			r.Refused[id] = *p.refused
		}
	}
	for _, n := range s.nodes {
		if n.group != "" {
			r.Nodes[n.group]++
		}
	}
	return r
}

// SetReports sets the reports of the other gateways.
func (s *Server) SetReports(others []Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = others
}

// GroupStatus is the state of a group of Envoys.
type GroupStatus struct {
	Group string `json:"group"`
	// Nodes counts the Envoys of the group at all gateways that share a Redis, and Here those connected to this gateway.
	Nodes int64 `json:"nodes"`
	Here  int64 `json:"here"`
	// Refused is the oldest current refusal at any gateway, or nil.
	Refused *Refusal `json:"refused,omitempty"`
}

// Groups returns the configured groups, sorted.
func (s *Server) Groups() []GroupStatus {
	own := s.Report()
	s.mu.Lock()
	others := s.others
	s.mu.Unlock()
	groups := []GroupStatus{}
	for _, id := range slices.Sorted(maps.Keys(own.Nodes)) {
		g := GroupStatus{Group: id, Here: own.Nodes[id]}
		for _, r := range append([]Report{own}, others...) {
			g.Nodes += r.Nodes[id]
			if refused, ok := r.Refused[id]; ok && (g.Refused == nil || refused.Since.Before(g.Refused.Since)) {
				g.Refused = &refused
			}
		}
		groups = append(groups, g)
	}
	return groups
}
