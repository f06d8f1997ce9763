package s3store

// SealedBy names the checksum that bodies are sent with.
func (s *Store) SealedBy() string {
	if s.checksSHA.Load() {
		return "signed SHA-256"
	}
	return "Content-MD5"
}
