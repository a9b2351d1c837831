// Two processes that know one secret talk by TLS; others can't talk to them.
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#include "world/sides.hpp"

namespace meshpost {
namespace {

using namespace test;

using TlsEnds = TlsTest;

// -- proofs of the secret

TEST_F(TlsEnds, prove_themselves_to_each_other_and_carry_text_both_ways_in_any_pieces) {
  std::string forth, back;
  for (int round = 0; round < 400; ++round) {
    for (auto* const side : {&caller_, &acceptor_}) {
      if (!side->tls.is_proven()) continue;
      auto const said = bytes(below(10) ? below(100) : below(60'000));
      (side == &caller_ ? forth : back) += said;
      side->say(said);
    }
    for (auto* const side : {&caller_, &acceptor_}) {
      auto& other = side == &caller_ ? acceptor_ : caller_;
      auto const piece = side->out.substr(0, 1 + below(side->out.size() < 1000 ? 30 : 40'000));
      side->out.erase(0, piece.size());
      other.take(piece);
    }
  }
  acceptor_.take(caller_.give());
  caller_.take(acceptor_.give());
  EXPECT_GT(forth.size(), 100'000u);
  EXPECT_TRUE(acceptor_.text == forth);
  EXPECT_TRUE(caller_.text == back);
}

TEST_F(TlsEnds, with_different_secrets_both_say_so) {
  Side peer(Tls::Context(Secret(random_bytes())), End::caller);
  EXPECT_TRUE(says(error_of([&] { acceptor_.take(peer.give()); }), Kind::bad_environment,
                   {Tls::other_secret, "MESHPOST_SECRET"}));
  EXPECT_TRUE(says(error_of([&] { peer.take(acceptor_.give()); }), Kind::bad_environment,
                   {Tls::other_secret, "MESHPOST_SECRET"}));
  EXPECT_FALSE(acceptor_.tls.is_proven() || peer.tls.is_proven());
}

// Fresh keys each time: recorded bytes prove nothing later.
TEST_F(TlsEnds, prove_nothing_by_what_others_have_said_before) {
  auto const said = sides_.greet();
  auto [caller, acceptor] = Sides(context_);
  acceptor.take(said[0]);
  EXPECT_FALSE(acceptor.tls.is_proven());
  EXPECT_TRUE(is_garbage_or_other_secret(error_of([&] { acceptor.take(said[2]); })));
  EXPECT_TRUE(is_garbage_or_other_secret(error_of([&] { caller.take(said[1]); })));
  EXPECT_FALSE(acceptor.tls.is_proven() || caller.tls.is_proven());
}

TEST_F(TlsEnds, that_hear_their_own_words_refuse_them) {
  EXPECT_TRUE(is_garbage_or_other_secret(error_of([&] { caller_.take(caller_.out); })));
}

TEST_F(TlsEnds, send_nothing_before_they_are_proven_and_nothing_readable_after) {
  caller_.say("a message");
  acceptor_.say("a message");
  EXPECT_TRUE(acceptor_.out.empty());
  EXPECT_EQ(caller_.give().find("a message"), std::string::npos);
  auto [caller, acceptor] = Sides(context_);
  acceptor.take(caller.give());
  caller.take(acceptor.give());
  caller.say("a message");
  EXPECT_EQ(caller.out.find("a message"), std::string::npos);
  acceptor.take(caller.give());
  EXPECT_EQ(acceptor.text, "a message");
}

// -- other programs that speak TLS

struct FreeAll {
  void operator()(SSL_CTX* one) const { SSL_CTX_free(one); }
  void operator()(SSL* one) const { SSL_free(one); }
  void operator()(EVP_PKEY* one) const { EVP_PKEY_free(one); }
  void operator()(X509* one) const { X509_free(one); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeAll>;

// A program without the secret.
class OtherProgram {
 public:
  OtherProgram(End end, int version, bool certified = false) : context_(SSL_CTX_new(TLS_method())) {
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    if (certified) certify();
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (end == End::caller) SSL_set_connect_state(ssl_.get());
    else SSL_set_accept_state(ssl_.get());
  }
  std::string answer(std::string const& bytes) {
    BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    SSL_do_handshake(ssl_.get());
    char* all = nullptr;
    auto const size = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &all);
    return {all, static_cast<std::size_t>(size)};
  }

 private:
  void certify() {
    Owned<EVP_PKEY> const key(EVP_EC_gen("P-256"));
    Owned<X509> const card(X509_new());
    X509_gmtime_adj(X509_getm_notBefore(card.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(card.get()), 3600);
    X509_set_pubkey(card.get(), key.get());
    EXPECT_GT(X509_sign(card.get(), key.get(), EVP_sha256()), 0);
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), card.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), key.get()), 1);
  }
  Owned<SSL_CTX> context_;
  Owned<SSL> ssl_;
};

TEST_F(TlsEnds, refuse_an_acceptor_that_shows_a_certificate_instead_of_knowing_the_secret) {
  OtherProgram impostor(End::acceptor, TLS1_3_VERSION, true);
  auto const answer = impostor.answer(caller_.give());
  EXPECT_GT(answer.size(), 300u);  // with the certificate in it
  EXPECT_TRUE(says(error_of([&] { caller_.take(answer); }), Kind::bad_argument,
                   {"it shows a certificate instead of knowing the secret"}));
  EXPECT_FALSE(caller_.tls.is_proven());
}

TEST_F(TlsEnds, refuse_callers_without_a_key_and_of_other_versions_of_tls) {
  for (int const version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    OtherProgram other(End::caller, version);
    Side acceptor(context_, End::acceptor);
    EXPECT_TRUE(says(error_of([&] { acceptor.take(other.answer("")); }), Kind::bad_argument,
                     {"it does not greet as this version does"}));
    EXPECT_FALSE(acceptor.tls.is_proven());
  }
}

// -- long connections, ends

TEST_F(TlsEnds, change_keys_on_their_way_and_go_on) {
  Tls::Context const often(Secret(random_bytes()), 3000);
  Sides sides(often);
  auto& [caller, acceptor] = sides;
  sides.greet();
  for (int round = 0; round < 300; ++round) {
    auto const forth = bytes(below(200)), back = bytes(below(50) ? 1 : 50'000);
    caller.say(forth);
    acceptor.say(back);
    acceptor.take(caller.give());
    caller.take(acceptor.give());
    ASSERT_EQ(std::exchange(acceptor.text, {}), forth);
    ASSERT_TRUE(std::exchange(caller.text, {}) == back);
  }
}

TEST_F(TlsEnds, say_that_they_close_and_still_listen) {
  sides_.greet();
  acceptor_.say("before");
  acceptor_.tls.close(acceptor_.out);
  caller_.take(acceptor_.give());
  EXPECT_EQ(caller_.text, "before");
  EXPECT_TRUE(caller_.tls.is_closed());
  caller_.say("after");
  acceptor_.take(caller_.give());
  EXPECT_EQ(acceptor_.text, "after");
  EXPECT_FALSE(acceptor_.tls.is_closed());
}

}  // namespace
}  // namespace meshpost
