// Package s3store is the wsync.Store on any S3 server. It alone imports the AWS SDK.
//
//	Store ─┬─ bulk client:   6 tries, no retry quota ─► packs, blobs, reads
//	       └─ single client: 1 try                   ─► conditional writes
//
// # Glossary
//
//   - Conditional write: a PUT with If-Match or If-None-Match. It is tried once. If the reply of a first try got lost,
//     a second one would be refused because the first took effect; the caller reads the object instead.
//   - Self-test: proof, on the real bucket, that the server keeps conditions and checks bodies.
//     Some servers accept conditions and ignore them.
//
// Checksums: the SDK's own are off, since partial servers fail on them. A body goes out under its signed
// SHA-256 if the self-test has seen the server compare it, else with a Content-MD5; wsync checks what it reads.
package s3store
