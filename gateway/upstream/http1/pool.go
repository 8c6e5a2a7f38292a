package http1

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// destination is the target of a connection. credential is the value of the Authorization header, which is the same for all requests on a
// connection.
type destination struct{ scheme, host, credential string }

func destinationOf(req *http.Request) destination {
	d := destination{scheme: req.URL.Scheme, host: req.URL.Host}
	if values := req.Header["Authorization"]; len(values) > 0 {
		d.credential = values[0]
	}
	return d
}

// pool contains idle connections.
type pool struct {
	mu    sync.Mutex              // guards the fields below
	idle  map[destination][]*conn // most recently used last
	count int
	armed bool // a timer is set to close expired connections
	// closed is true if the pool does not keep connections until the next request.
	closed bool
}

// take returns a usable connection that has been idle for less than timeout and was opened less than maxAge ago. A maxAge of 0 means no
// limit. take returns nil if the pool has no such connection.
func (p *pool) take(to destination, timeout, maxAge time.Duration) *conn {
	for {
		c := p.pop(to)
		if c == nil {
			return nil
		}
		if time.Since(c.since) < timeout && (maxAge == 0 || time.Since(c.opened) < maxAge) && c.isIdle() {
			c.reused = true
			return c
		}
		c.abort()
	}
}

func (p *pool) pop(to destination) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
	list := p.idle[to]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.idle[to] = list[:len(list)-1]
	p.count--
	return c
}

// put adds a connection to the pool. If the limit is reached, it closes the connection that has
// been idle longest.
func (p *pool) put(c *conn, limit int, timeout time.Duration) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || limit <= 0 {
		c.abort()
		return
	}
	if p.count >= limit {
		p.evict()
	}
	if p.idle == nil {
		p.idle = make(map[destination][]*conn)
	}
	p.idle[c.to] = append(p.idle[c.to], c)
	p.count++
	if !p.armed {
		p.armed = true
		time.AfterFunc(timeout, func() { p.expireLater(timeout) })
	}
}

// makeRoom closes the connection that has been idle longest, if there is one.
func (p *pool) makeRoom() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count > 0 {
		p.evict()
	}
}

// evict closes the connection that has been idle longest. The pool must not be empty.
func (p *pool) evict() {
	var from destination
	var oldest *conn
	for to, list := range p.idle {
		if len(list) > 0 && (oldest == nil || list[0].since.Before(oldest.since)) {
			from, oldest = to, list[0]
		}
	}
	oldest.abort()
	p.idle[from] = slices.Delete(p.idle[from], 0, 1)
	p.count--
}

// close closes all idle connections.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.expire(0)
}

// expireLater closes expired connections and sets the timer again if any are left.
func (p *pool) expireLater(timeout time.Duration) {
	p.expire(timeout)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed = p.count > 0; p.armed {
		time.AfterFunc(timeout, func() { p.expireLater(timeout) })
	}
}

// expire closes connections that have been idle for at least timeout.
func (p *pool) expire(timeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for to, list := range p.idle {
		old := 0
		for old < len(list) && time.Since(list[old].since) >= timeout {
			list[old].abort()
			old++
		}
		p.count -= old
		if old == len(list) {
			delete(p.idle, to)
		} else {
			p.idle[to] = append([]*conn(nil), list[old:]...)
		}
	}
}
