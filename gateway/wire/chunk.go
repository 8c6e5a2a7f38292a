package wire

// scanBody checks the bytes of a body up to the next state change.
func (f *framer) scanBody(b []byte) (int, *Refusal) {
	c := b[0]
	switch f.state {
	case inBody:
		return f.skip(b, atStart), nil
	case inChunk:
		return f.skip(b, atChunkEnd), nil
	case atChunk, inChunkSize:
		return f.chunkSize(c)
	case inChunkExt:
		return f.chunkExt(c)
	case atChunkLine:
		if c != '\n' {
			return 0, errLineEnd
		}
		f.openChunk()
		return 1, nil
	case atChunkEnd:
		if c != '\r' {
			return 0, errChunkEnd
		}
		f.state = atChunkFinish
		return 1, nil
	default: // atChunkFinish
		if c != '\n' {
			return 0, errChunkEnd
		}
		f.state = atChunk
		return 1, nil
	}
}

// skip accepts content without checking it. At the end of the content, it enters the state behind.
func (f *framer) skip(b []byte, behind state) int {
	n := min(f.remain, int64(len(b)))
	if f.remain -= n; f.remain == 0 {
		f.state = behind
	}
	return int(n)
}

// chunkSize reads 1*HEXDIG (RFC 9112, section 7.1), limited to eight digits to rule out overflow in any recipient.
func (f *framer) chunkSize(c byte) (int, *Refusal) {
	if f.state == atChunk {
		f.state, f.pos, f.remain = inChunkSize, 0, 0
	}
	digit, ok := unhex(c)
	switch {
	case ok && f.pos < maxChunkDigits:
		f.pos++
		f.remain = f.remain<<4 | digit
	case c == '\r' && f.pos > 0:
		f.state = atChunkLine
	case c == ';' && f.pos > 0:
		f.state = inChunkExt
	default:
		return 0, errChunkSize
	}
	return 1, nil
}

// chunkExt accepts chunk extensions, up to a total length. Recipients must ignore unknown chunk extensions.
func (f *framer) chunkExt(c byte) (int, *Refusal) {
	if c == '\r' {
		f.state = atChunkLine
		return 1, nil
	}
	if f.ext++; class[c]&text == 0 || f.ext > maxExtensions {
		return 0, errChunkExt
	}
	return 1, nil
}

// openChunk starts the data of a chunk. The last chunk is empty and is followed by the trailer section.
func (f *framer) openChunk() {
	if f.remain > 0 {
		f.state = inChunk
		return
	}
	f.state, f.trailer = atLine, true
	f.size, f.fields = 0, 0
}

func unhex(c byte) (int64, bool) {
	switch {
	case c >= '0' && c <= '9':
		return int64(c - '0'), true
	case c >= 'a' && c <= 'f':
		return int64(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return int64(c-'A') + 10, true
	}
	return 0, false
}
