package spend

// Become gives the store the contents of another, which nothing else uses.
func (m *Memory) Become(other *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orgs = other.orgs
}
