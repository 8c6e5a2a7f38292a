package ratelimit

// Queued returns the number of calls waiting for an exchange.
func (l *Limiter) Queued() int { return l.commit.Queued() }

// Known returns the number of addresses remembered.
func (l *AddressLimiter) Known() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.due)
}

// Remembered returns the number of scopes l has accounts of.
func (l *Limiter) Remembered() int64 {
	known, _ := l.totals()
	return known
}

// Held returns the number of permits of running minutes that l holds.
func (l *Limiter) Held() int64 {
	_, held := l.totals()
	return held
}

// SetLive tells l how many gateways share the store, as a beat does.
func (l *Limiter) SetLive(n int64) { l.live.Store(n) }

// HeldOf returns the number of permits of window w that l holds and could spend,
// by its own clock.
func (l *Limiter) HeldOf(w int) int64 {
	now, sum := l.tick(), int64(0)
	l.book.each(func(a *account) bool {
		if a.runs(w, now) {
			sum += a.held[w]
		}
		return true
	})
	return sum
}
