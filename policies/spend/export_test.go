package spend

import "os"

// Become gives the store the contents of another, which nothing else uses.
func (m *Memory) Become(other *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orgs = other.orgs
}

// Path returns the path of the journal's file.
func (j *Journal) Path() string { return j.path }

// Fail has the journal write to another file, which fails, until it is replaced.
func (j *Journal) Fail(f *os.File) { j.file = f }
