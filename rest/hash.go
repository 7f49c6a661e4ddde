package rest

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// What argon2id costs: 19 MiB and two passes, as OWASP's cheat sheet on storing
// passwords has it.
const (
	argonMemory = 19 << 10 // KiB
	argonPasses = 2
	argonLanes  = 1
	argonKey    = 32
	argonSalt   = 16
)

// The most that the hash of an account may cost.
const (
	maxArgonMemory = 256 << 10 // KiB
	maxArgonPasses = 16
	maxArgonLanes  = 16
	maxBcryptCost  = 14
)

// HashPassword makes the hash of a password that accounts are configured
// with: argon2id, in the form of its reference implementation.
func HashPassword(password string, random io.Reader) (string, error) {
	if len(password) < 8 {
		return "", errors.New("the password is shorter than 8 bytes")
	}
	salt := make([]byte, argonSalt)
	if _, err := io.ReadFull(random, salt); err != nil {
		return "", fmt.Errorf("drawing a salt: %w", err)
	}
	key := argon2.IDKey([]byte(password), salt, argonPasses, argonMemory, argonLanes, argonKey)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonPasses, argonLanes, b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

// NewToken draws a token and returns it with the hash that accounts are
// configured with. Tokens are long enough that a plain SHA-256 keeps them.
func NewToken(random io.Reader) (token, hash string, err error) {
	var secret [32]byte
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return "", "", fmt.Errorf("drawing a token: %w", err)
	}
	token = "croft-" + base64.RawURLEncoding.EncodeToString(secret[:])
	return token, hashToken(token), nil
}

const tokenScheme = "sha256:"

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return tokenScheme + hex.EncodeToString(sum[:])
}

// hash is a configured hash of a password.
type hash struct {
	bcrypt         []byte // or argon2id:
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
}

func parseHash(text string) (*hash, error) {
	if strings.HasPrefix(text, "$2") {
		cost, err := bcrypt.Cost([]byte(text))
		if err != nil {
			return nil, errors.New("not a bcrypt hash")
		}
		if cost > maxBcryptCost {
			return nil, fmt.Errorf("a bcrypt hash of cost %d: at most %d", cost, maxBcryptCost)
		}
		return &hash{bcrypt: []byte(text)}, nil
	}
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return nil, errors.New("neither a bcrypt nor an argon2id hash (croft account hash makes one)")
	}
	h := &hash{}
	var v int
	if _, err := fmt.Sscanf(parts[2], "v=%d", &v); err != nil || v != argon2.Version {
		return nil, errors.New("an argon2id hash of another version")
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.lanes); err != nil ||
		h.memory < 8 || h.memory > maxArgonMemory || h.passes < 1 || h.passes > maxArgonPasses || h.lanes < 1 || h.lanes > maxArgonLanes {
		return nil, errors.New("an argon2id hash with parameters that are none, or too large")
	}
	var err, err2 error
	h.salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	h.key, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || err2 != nil || len(h.salt) < 8 || len(h.key) < 16 || len(h.key) > 128 {
		return nil, errors.New("an argon2id hash that is cut short")
	}
	return h, nil
}

func (h *hash) is(password string) bool {
	if h.bcrypt != nil {
		// bcrypt looks at 72 bytes; more would be another password.
		return len(password) <= 72 && bcrypt.CompareHashAndPassword(h.bcrypt, []byte(password)) == nil
	}
	key := argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(key, h.key) == 1
}

// stretch makes a key of a secret: as dear to guess as a password's hash.
func stretch(member interface{ String() string }, secret string) []byte {
	salt := sha256.Sum256([]byte(stretchSalt + "\x00" + member.String()))
	return argon2.IDKey([]byte(secret), salt[:], argonPasses, argonMemory, argonLanes, argonKey)
}
