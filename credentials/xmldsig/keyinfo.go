package xmldsig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"math/big"
)

// maxCertificates bounds the certificates of one signature.
const maxCertificates = 16

// keyValue is a key that stands in the document. It is never trusted; a
// document in which it differs from the signer's is refused.
type keyValue struct {
	modulus, exponent *big.Int // of RSA
	other             string   // the name of any other kind
}

func (k *keyValue) match(key crypto.PublicKey) error {
	if k == nil {
		return nil
	}
	switch key := key.(type) {
	case *rsa.PublicKey:
		if k.modulus != nil && key.N.Cmp(k.modulus) == 0 && big.NewInt(int64(key.E)).Cmp(k.exponent) == 0 {
			return nil
		}
	case *ecdsa.PublicKey:
		return refuse(RuleKeyValue, "the document carries a key beside the signer's certificate (%s)", k.other)
	}
	return refuse(RuleKeyValue, "the document carries a key that is not the one of the signer's certificate")
}

func (s *Signature) readKeyInfo(e *Element) error {
	all, err := onlyElements(e)
	if err != nil {
		return err
	}
	data := false
	for _, child := range all {
		switch {
		case child.Is(Namespace, "X509Data") && !data:
			data = true
			if err := s.readX509Data(child); err != nil {
				return err
			}
		case child.Is(Namespace, "KeyValue") && s.keyValue == nil:
			if s.keyValue, err = readKeyValue(child); err != nil {
				return err
			}
		default:
			return refuse(RuleKeyInfo, "line %d: <%s> in KeyInfo; want one X509Data", child.Line, child.Name.Local)
		}
	}
	if len(s.Certificates) == 0 {
		if s.keyValue != nil {
			return refuse(RuleKeyValue, "line %d: a key without a certificate is never trusted", e.Line)
		}
		return refuse(RuleKeyInfo, "line %d: no certificate", e.Line)
	}
	return nil
}

func (s *Signature) readX509Data(e *Element) error {
	all, err := onlyElements(e)
	if err != nil {
		return err
	}
	for _, child := range all {
		switch {
		case child.Is(Namespace, "X509Certificate"):
			if len(s.Certificates) == maxCertificates {
				return refuse(RuleLimit, "line %d: more than %d certificates", child.Line, maxCertificates)
			}
			der, err := binary(child)
			if err != nil {
				return err
			}
			s.Certificates = append(s.Certificates, der)
		case child.Is(Namespace, "X509SubjectName"), child.Is(Namespace, "X509IssuerSerial"), child.Is(Namespace, "X509SKI"):
			// They name the certificate again and prove nothing.
		default:
			return refuse(RuleKeyInfo, "line %d: <%s> in X509Data; want certificates", child.Line, child.Name.Local)
		}
	}
	return nil
}

func readKeyValue(e *Element) (*keyValue, error) {
	all, err := onlyElements(e)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, refuse(RuleKeyValue, "line %d: KeyValue with %d elements in it", e.Line, len(all))
	}
	if !all[0].Is(Namespace, "RSAKeyValue") {
		return &keyValue{other: all[0].Name.Local}, nil
	}
	parts, err := children(all[0], "Modulus", "Exponent")
	if err != nil {
		return nil, err
	}
	modulus, err := binary(parts[0])
	if err != nil {
		return nil, err
	}
	exponent, err := binary(parts[1])
	if err != nil {
		return nil, err
	}
	return &keyValue{modulus: new(big.Int).SetBytes(modulus), exponent: new(big.Int).SetBytes(exponent)}, nil
}
