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

// Refusal describes a configuration that an Envoy of a group refused. It is removed when all connected Envoys of the group have accepted
// the current configuration.
type Refusal struct {
	// Since is the time when an Envoy first refused a configuration after the last accepted one.
	Since time.Time `json:"since"`
	Node  string    `json:"node"`
	// Type and Version identify the resources that were refused last. Reason is the error message of the Envoy.
	Type    string `json:"type"`
	Version string `json:"version"`
	Reason  string `json:"reason"`
	// Withdrawn is true if the group's previous configuration was restored. It is false if there is no previous configuration, or if a new
	// configuration is being tried.
	Withdrawn bool `json:"withdrawn"`

	typeURL string
}

// maxSaid is the maximum length, in bytes, of an Envoy's error message that is logged, stored in Redis and sent to other gateways.
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

// review removes the refusals of groups where all Envoys have accepted the current configuration. The caller must hold mu.
func (s *Server) review() {
	for id, p := range s.groups {
		if p.refused != nil && !p.refused.Withdrawn && s.taken(id, p.refused.typeURL) {
			s.deps.Logger.Info("all connected Envoys use the current configuration", "group", id, "type", p.refused.Type)
			p.refused = nil
		}
	}
}

// taken reports whether all connected Envoys of the group have the served version of a resource type. The caller must hold mu.
func (s *Server) taken(group, typeURL string) bool {
	served := s.version(group, typeURL)
	for _, n := range s.nodes {
		if n.group != group {
			continue
		}
		t := n.types[typeURL]
		if t == nil || t.reason != "" || s.accepted(n, t, typeURL) != served {
			return false
		}
	}
	return served != ""
}

// accepted returns the version of a resource type that a node uses. It is the version that the node accepted last or, if the node brought
// the same resources from another gateway, the served version. The caller must hold mu.
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

// Report describes the Envoys connected to one gateway. Gateways exchange reports through the registry.
type Report struct {
	// Nodes is the number of Envoys in each group.
	Nodes map[string]int64 `json:"nodes"`
	// Refused holds the current refusal of each group that has one.
	Refused map[string]Refusal `json:"refused,omitempty"`
}

// Report returns the report about the Envoys connected to this gateway.
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

// GroupStatus describes a group of Envoys across all gateways that share a Redis.
type GroupStatus struct {
	Group string `json:"group"`
	// Nodes is the number of Envoys of the group that are connected to any of the gateways. Here is the number connected to this gateway.
	Nodes int64 `json:"nodes"`
	Here  int64 `json:"here"`
	// Refused is the oldest current refusal at any of the gateways, or nil.
	Refused *Refusal `json:"refused,omitempty"`
}

// Groups returns the status of each configured group, sorted by ID.
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
