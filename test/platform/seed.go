package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
)

// Seed is what an emulator starts with, as a file says it: accounts, prices,
// stock, and calls that are made before all others.
type Seed struct {
	Accounts []Account   `json:"accounts"`
	Prices   []SeedPrice `json:"prices"`
	Stock    []SeedStock `json:"stock"`
	Calls    []SeedCall  `json:"calls"`
}

// SeedPrice is what a GPU type costs; see Server.SetPrice.
type SeedPrice struct {
	GPU        string  `json:"gpu"`
	Secure     float64 `json:"secure"`
	Community  float64 `json:"community"`
	Serverless float64 `json:"serverless"`
}

// SeedStock is how much there is of a type; see Server.SetStock.
type SeedStock struct {
	Type       string `json:"type"`
	Cloud      string `json:"cloud"`
	DataCenter string `json:"dataCenter"`
	Total      int    `json:"total"`
}

// SeedCall is one call to the REST API, made as an account. It must succeed.
type SeedCall struct {
	Account string          `json:"account"`
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Body    json.RawMessage `json:"body"`
}

// ParseSeed reads a seed; names it does not know are refused.
func ParseSeed(data []byte) (*Seed, error) {
	var seed Seed
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&seed); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("seed: text after the JSON object")
	}
	return &seed, nil
}

// ApplySeed sets prices and stock and makes the calls of a seed; its accounts
// have to be in the options already. Calls of an account that owns something,
// because a data file kept it, are left out. The first fault ends it.
func (s *Server) ApplySeed(ctx context.Context, seed *Seed) error {
	for _, p := range seed.Prices {
		if err := s.setPrice(p); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	for _, st := range seed.Stock {
		if err := s.setStock(st); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	s.mu.Lock()
	s.seed = seed
	s.mu.Unlock()
	owned := s.owned()
	for i, c := range seed.Calls {
		if owned[c.Account] {
			continue
		}
		if err := s.seedCall(ctx, c); err != nil {
			return fmt.Errorf("seed: call %d: %w", i+1, err)
		}
	}
	s.ResetCalls()
	return nil
}

func (s *Server) setPrice(p SeedPrice) error {
	return s.SetPrice(p.GPU, Price{p.Secure, p.Community, p.Serverless})
}

func (s *Server) setStock(st SeedStock) error {
	return s.SetStock(st.Type, st.Cloud, st.DataCenter, st.Total)
}

// owned returns the accounts that own anything.
func (s *Server) owned() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]bool{}
	for id, a := range s.accounts {
		out[id] = a.pods.len()+a.volumes.len()+a.registries.len()+a.templates.len()+a.delegations.len()+
			a.clusters.len()+a.endpoints.len()+a.secrets.len()+a.sandboxes.len() > 0
	}
	return out
}

func (s *Server) seedCall(ctx context.Context, c SeedCall) error {
	a := s.accounts[c.Account]
	if a == nil || a.fullKey == "" {
		return fmt.Errorf("account %q has no key with full access", c.Account)
	}
	r, err := http.NewRequestWithContext(ctx, c.Method, c.Path, bytes.NewReader(c.Body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+a.fullKey)
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	if answer.Code < 200 || answer.Code > 299 {
		return fmt.Errorf("%s %s: status %d: %s", c.Method, c.Path, answer.Code, answer.Body)
	}
	return nil
}
